"""The simulated CUDA and HIP runtime: unmodified programs run their memory management on a machine without a GPU."""
