// A thread of the runtime's own beside the client's.
#pragma once

#include <pthread.h>
#include <stdbool.h>

// Makes a thread that no signal of the client's comes to and that nobody joins, in the midst of a call: with the lock
// held. Returns whether it was made.
bool service_thread_make(pthread_t *thread, void *(*work)(void *));
