"""Two streams write one array, and nothing orders them."""

import numpy
from numba import cuda

first, second = cuda.stream(), cuda.stream()
source = numpy.ones(1000, numpy.int32)
array = cuda.device_array(1000, numpy.int32)
array.copy_to_device(cuda.pinned_array_like(source), stream=first)
array.copy_to_device(cuda.pinned_array_like(source), stream=second)  # the fault
cuda.synchronize()
