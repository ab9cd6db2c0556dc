"""Arrays, copies and a stream of numba-cuda."""

import numpy
from numba import cuda

stream = cuda.stream()
array = cuda.to_device(numpy.full(1000, 7, numpy.int32), stream=stream)
found = array.copy_to_host(stream=stream)
stream.synchronize()
assert (found == 7).all()
