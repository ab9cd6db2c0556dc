"""RMM's pool gets memory back after an event of the other stream that uses it."""

import cupy
import rmm
from rmm.allocators.cupy import rmm_cupy_allocator

SOURCE = r"""
extern "C" __global__ void fill(float *array, int size) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < size) array[index] = index;
}
extern "C" __global__ void twice(const float *array, float *result, int size) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < size) result[index] = 2 * array[index];
}
"""
SIZE = 100_000
GRID = ((SIZE + 255) // 256,), (256,)
module = cupy.RawModule(code=SOURCE)
fill, twice = module.get_function("fill"), module.get_function("twice")
pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=2**22)
rmm.mr.set_current_device_resource(pool)
cupy.cuda.set_allocator(rmm_cupy_allocator)
first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
result = cupy.empty(SIZE, cupy.float32)
cupy.cuda.Device().synchronize()
with first:
    array = cupy.empty(SIZE, cupy.float32)
    fill(*GRID, (array, SIZE))
    written = first.record()
second.wait_event(written)
with second:
    twice(*GRID, (array, result, SIZE))
    used = second.record()
first.wait_event(used)
address = array.data.ptr
del array  # the pool of the first stream has its memory again
with first:
    array = cupy.empty(SIZE, cupy.float32)
    assert array.data.ptr == address
    fill(*GRID, (array, SIZE))
cupy.cuda.Device().synchronize()
assert float(result[-1]) == 2 * (SIZE - 1)
