"""A kernel gets a view of an array after the array is dropped."""

import cupy

SOURCE = r"""
extern "C" __global__ void twice(const int *array, int *result, int size) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < size) result[index] = 2 * array[index];
}
"""
SIZE = 1000
twice = cupy.RawModule(code=SOURCE).get_function("twice")
array, result = cupy.arange(SIZE, dtype=cupy.int32), cupy.empty(SIZE, cupy.int32)
memory = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, owner=None)
view = cupy.ndarray(SIZE, cupy.int32, cupy.cuda.MemoryPointer(memory, 0))
del array
twice((8,), (128,), (view, result, SIZE))  # the fault
cupy.cuda.Device().synchronize()
