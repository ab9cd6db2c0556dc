"""A kernel gets a view of an array that is there."""

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
double[8, 128](cuda.as_cuda_array(view), result)
cuda.synchronize()
assert result.copy_to_host()[-1] == 2 * (SIZE - 1)
del array
