"""The program frees memory that CTranslate2 frees again."""

import ctypes

import ctranslate2
import numpy

values = ctranslate2.StorageView.from_array(numpy.full(1000, 7, numpy.int32)).to_device(ctranslate2.Device.cuda)
address = values.__cuda_array_interface__["data"][0]
runtime = ctypes.CDLL("libcudart.so")
runtime.cudaDeviceSynchronize()
runtime.cudaFree(ctypes.c_void_p(address))
del values  # the fault
