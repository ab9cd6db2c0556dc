"""Paged memory is lost."""

import ctypes
import importlib.util

folder = importlib.util.find_spec("bitsandbytes").submodule_search_locations[0]
library = ctypes.CDLL(f"{folder}/libbitsandbytes_cuda124.so")  # the package itself needs PyTorch
library.cget_managed_ptr.restype = ctypes.c_void_p
library.cget_managed_ptr(ctypes.c_size_t(4096))  # the fault
