// Kernels that were launched and did not compute although kernels run: a log of text in the run's folder, which
// simulator/uncomputed.py reads.
#pragma once

// Says it on standard error and in the log; the caller asks once for each kernel.
void uncomputed_note(const char *kernel, const char *reason);
