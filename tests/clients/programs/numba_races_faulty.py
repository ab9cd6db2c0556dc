"""A stream reads what the kernel of another stream writes, and nothing orders the two."""

import numpy
from numba import cuda


@cuda.jit(lineinfo=True)
def fill(array):
    index = cuda.grid(1)
    if index < array.size:
        array[index] = index


@cuda.jit(lineinfo=True)
def double(array, result):
    index = cuda.grid(1)
    if index < array.size:
        result[index] = 2 * array[index]


first, second = cuda.stream(), cuda.stream()
array, result = cuda.device_array(1000, numpy.int32), cuda.device_array(1000, numpy.int32)
fill[8, 128, first](array)  # the first use
double[8, 128, second](array, result)  # the fault
cuda.synchronize()
assert result.copy_to_host()[999] == 1998
