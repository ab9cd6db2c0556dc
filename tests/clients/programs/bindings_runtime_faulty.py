"""A block is used after it was freed."""

from cuda.bindings import runtime

_, block = runtime.cudaMalloc(4096)
runtime.cudaFree(block)
runtime.cudaMemset(block, 7, 4096)  # the fault
