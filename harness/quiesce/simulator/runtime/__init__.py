"""The simulated CUDA/HIP runtime from Python's side: its build, its libraries, a run's folder and its logs."""
