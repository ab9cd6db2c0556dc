// Callbacks of cuFFT: device functions of the client's through which a plan loads and stores its elements.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"

struct fft_callbacks;
struct hosted_call;
struct stream;

enum { CALLBACK_TYPES = 8, CALLBACK_STORES = 4 };  // cufftXtCallbackType: the first ones load

// Adds a callback to those of a plan, which may be NULL. `code`: PTX, in place of LTO-IR. `information`: what the
// callback gets with each element. NOT_SUPPORTED, which was said: it is no PTX. NOT_FOUND: it has no such function.
enum status fft_callbacks_set(struct fft_callbacks **callbacks, const char *function, unsigned type, const char *name,
                              const char *code, size_t bytes, uint64_t information);

// Executes a plan that has some. The call's area is the plan's, or 0: there is none.
enum status fft_callbacks_execute(const struct fft_callbacks *callbacks, const char *function, struct hosted_call *call,
                                  struct stream *stream, int *answer);

void fft_callbacks_delete(struct fft_callbacks *callbacks);
