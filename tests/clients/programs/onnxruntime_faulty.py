"""A value is read while another stream writes it."""

import ctypes

import numpy
import onnxruntime

runtime = ctypes.CDLL("libcudart.so")
stream = ctypes.c_void_p()
runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
value = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.full(1000, 7, numpy.float32), "cuda", 0)
runtime.cudaMemsetAsync(ctypes.c_void_p(value.data_ptr()), 0, ctypes.c_size_t(4000), stream)
value.numpy()  # the fault
