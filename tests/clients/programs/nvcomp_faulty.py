"""The program frees memory that nvCOMP frees again."""

import ctypes

import numpy
from nvidia import nvcomp

array = nvcomp.as_array(numpy.full(4096, 7, numpy.uint8)).cuda()
address = array.__cuda_array_interface__["data"][0]
ctypes.CDLL("libcudart.so").cudaFree(ctypes.c_void_p(address))
del array  # the fault
