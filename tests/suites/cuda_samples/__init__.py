"""NVIDIA's cuda-samples under ``quiesce exec``, from a checkout that the user has: one table of what came of each."""
