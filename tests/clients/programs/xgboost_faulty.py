"""Labels are read on the device while another stream writes them."""

import ctypes
import json

import numpy
import xgboost

runtime = ctypes.CDLL("libcudart.so")
block, stream = ctypes.c_void_p(), ctypes.c_void_p()
runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(400))
runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
pages = xgboost.DMatrix(numpy.ones((100, 4)))
labels = {"data": (block.value, False), "shape": (100,), "strides": None, "typestr": "<f4", "version": 3}
runtime.cudaMemsetAsync(block, 0, ctypes.c_size_t(400), stream)
xgboost.core._LIB.XGDMatrixSetInfoFromInterface(pages.handle, b"label", json.dumps(labels).encode())  # the fault
