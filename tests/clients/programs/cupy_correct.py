"""Copies, streams, events and a pool, in order."""

import cupy
import numpy

first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
written = cupy.cuda.Event(disable_timing=True)
block = cupy.cuda.alloc(4096)
block.memset_async(1, 4096, first)
written.record(first)
second.wait_event(written)
block.memset_async(7, 4096, second)
second.synchronize()
array = cupy.ndarray(4096, numpy.uint8, memptr=block)
assert (cupy.asnumpy(array) == 7).all()
pinned = cupy.cuda.alloc_pinned_memory(64)
assert cupy.get_default_memory_pool().used_bytes() == 4096
del array, block
cupy.get_default_memory_pool().free_all_blocks()
assert cupy.get_default_memory_pool().total_bytes() == 0
