"""Another stream writes a matrix while it is factored."""

import ctypes

import jax
import jax.numpy as jnp
import numpy

(device,) = jax.devices()
runtime = ctypes.CDLL("libcudart.so")
stream = ctypes.c_void_p()
runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
matrix = jax.device_put(numpy.eye(16, dtype=numpy.float32), device).block_until_ready()
factor = jax.jit(lambda x: jnp.linalg.cholesky(x, symmetrize_input=False))
numpy.asarray(factor(matrix))
factor(matrix).block_until_ready()
runtime.cudaMemsetAsync(ctypes.c_void_p(matrix.unsafe_buffer_pointer()), 0, ctypes.c_size_t(1024), stream)  # the fault
numpy.asarray(factor(matrix))
