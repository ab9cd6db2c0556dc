// Kernels that were launched and did not compute, or not to their end, although kernels run: a log of text in the run's
// folder, which simulator/uncomputed.py reads. Each is said on standard error, too.
#pragma once

// The caller asks once for each kernel.
void uncomputed_note(const char *kernel, const char *reason);

// `how` the kernel ended.
void unfinished_note(const char *kernel, const char *how);
