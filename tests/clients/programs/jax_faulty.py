"""Another stream writes an array while it is read."""

import ctypes

import jax
import numpy

(device,) = jax.devices()
runtime = ctypes.CDLL("libcudart.so")
stream = ctypes.c_void_p()
runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
array = jax.device_put(numpy.full(1000, 7, numpy.int32), device).block_until_ready()
runtime.cudaMemsetAsync(ctypes.c_void_p(array.unsafe_buffer_pointer()), 0, ctypes.c_size_t(4000), stream)  # the fault
numpy.asarray(array)
