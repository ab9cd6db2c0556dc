// Judges the accesses of a kernel that its own code can't tell to be right (memory/shadow.h), and observes wrong ones:
// the first of each kind of each instruction, with the thread that made it, and how many there were.
#pragma once

#include <stdbool.h>

#include "kernels/wrong_access.h"

enum access_kind { LOADS, STORES, IS_ATOMIC, BEGINS_COPY };
enum access_space { OF_MEMORY, OF_SHARED, OF_LOCAL };

struct access {
    const struct kernel_context *context;
    uint64_t address;
    uint64_t bytes;
    enum access_kind kind;
    enum access_space space;
    const void *frame;  // of a thread that waits
    uint32_t thread;
};

// What is wrong with an access apart from its alignment; it changes nothing.
enum seen checks_judge(const struct access *access);

void checks_begin(const struct checked_launch *launch);
void checks_begin_beside(void);  // on another thread that runs blocks of the same launch
void checks_mute(bool is_muted);  // nothing that is wrong from now on is observed
// Who is told of each access that is right and comes here, and its kinds of use (a bit for each, touched.h); or NULL.
typedef void follow_access(const struct access *access, uint32_t touches, uint32_t site);
bool checks_follow(follow_access *follow);  // false: there is no memory for it
follow_access *checks_follower(void);       // who is told now, or NULL
uint32_t quiesce_kernel_follows(struct kernel_context *context);  // called by kernels: whether anybody is
// The bits that kernels look at by themselves (memory/shadow.h): none of them is set while accesses are followed.
void *checks_bits(void);
void *checks_bits_of_memory(void);  // whether or not
bool checks_is_argument(const struct kernel_context *context, uint64_t value);  // of the kernel, in 8 bytes of its own
void checks_see(const struct wrong_access *wrong);  // one that was judged elsewhere
void checks_see_waiting(const struct waiting *waiting);  // threads that wait for each other for ever
void checks_see_order(uint64_t address, uint32_t bytes);  // its results depend on the order
const struct checked_launch *checks_launch(void);  // that runs
void checks_end_kernel(enum kernel_end how);  // after a mistake that a device answers so; not while nothing is observed
void checks_end(bool by_user);  // also of a kernel that was left by a jump, which a user may have caused
void checks_close(void);

// Called by kernels: returns where an access is to take place. The first number has its size, its kind and its state
// space; the others are those of the instruction and of the thread in its block. `frame`: of a thread that waits.
void *quiesce_kernel_check(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                           uint32_t thread, const void *frame);

// The same for an access to none of the arrays that a thread has in local memory; and the array that it just misses.
void *quiesce_kernel_outside_local(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                                   uint32_t thread, uint64_t start, uint64_t bytes);

// The same for one side of a copy of many bytes, each part of which is as long as the first number says.
void *quiesce_kernel_check_copy(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                                uint32_t thread, const void *frame, uint64_t bytes);

// Copies many bytes, which were checked; a wrong copy does not take place.
void quiesce_kernel_copy(void *to, const void *from, uint64_t bytes);
