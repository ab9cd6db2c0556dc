"""A block is used after it was freed."""

from hip import hip

_, block = hip.hipMalloc(4096)
hip.hipFree(block)
hip.hipMemset(block, 7, 4096)  # the fault
