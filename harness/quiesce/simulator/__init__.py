"""The simulated CUDA and HIP runtime: the C library, what stands beside it for one run, and its ledger."""
