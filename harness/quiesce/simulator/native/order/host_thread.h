// The thread that host functions run on. It is none of the client's, as with the vendors: a host function may wait for
// what its caller does next, take a lock that its caller holds, and find no thread-local variable of the caller's.
#pragma once

#include <pthread.h>
#include <stdint.h>

struct stream;

struct host_call {
    void (*function)(void *data);
    void (*callback)(void *stream, int status, void *data);  // the older form; one of the two is NULL
    void *stream;
    void *data;
    uint64_t number;  // how many observations there were when a stream got it; 0: none gets it
};

// Hands a function over, and waits a moment for it: one that does not wait for the client has returned by then, under
// every schedule. Otherwise it goes on beside the client. `finished` is called with the lock once it has returned. The
// thread itself, when it comes to one more in the midst of a function's calls, runs that one in between. *runner
// becomes the thread that runs it.
void host_thread_run(struct stream *stream, const struct host_call *call, pthread_t *runner,
                     void (*finished)(struct stream *));

// For a function that is handed over where nothing may fail any more: makes the thread, and room for the call, or
// returns NULL. What was given runs behind what was given before, without the lock; its own calls are refused
// (NOT_PERMITTED). Nobody has to wait for it; host_thread_wait() does so for a moment, for whatever was given.
struct task *host_thread_prepare(const struct host_call *call);
void host_thread_give(struct task *task);
void host_thread_forget(struct task *task);  // it will not be given
void host_thread_wait(void);

// What the calling thread does may come before work that was enqueued later than so many observations: those of the
// host function that it runs.
uint64_t host_thread_reaches(void);

// Calls `see` with what each function is to get that was prepared or handed over and has not begun.
void host_thread_data(void (*see)(void *const *data));

// Waits until nothing runs, with no end where a function has none.
void host_thread_finish(void);
