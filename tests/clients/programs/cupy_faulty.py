"""Two streams write one block, and nothing orders them."""

import cupy

first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
block = cupy.cuda.alloc(4096)
block.memset_async(1, 4096, first)
block.memset_async(7, 4096, second)  # the fault
cupy.cuda.Device().synchronize()
