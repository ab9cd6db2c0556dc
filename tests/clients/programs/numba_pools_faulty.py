"""A kernel gets a view of an array after the array is dropped."""

import numpy
from numba import cuda

SIZE = 1000


@cuda.jit(lineinfo=True)
def double(array, result):
    index = cuda.grid(1)
    if index < array.size:
        result[index] = 2 * array[index]


class View:
    """The memory of an array, which it does not keep."""

    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__)


array = cuda.to_device(numpy.arange(SIZE, dtype=numpy.int32))
result = cuda.device_array(SIZE, numpy.int32)
view = View(array)
del array
double[8, 128](cuda.as_cuda_array(view), result)  # the fault
cuda.synchronize()
