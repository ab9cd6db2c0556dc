"""Paged memory of the library for CUDA 12.4: the host writes it, the device writes it."""

import ctypes
import importlib.util

folder = importlib.util.find_spec("bitsandbytes").submodule_search_locations[0]
library = ctypes.CDLL(f"{folder}/libbitsandbytes_cuda124.so")  # the package itself needs PyTorch
library.cget_managed_ptr.restype = ctypes.c_void_p
runtime = ctypes.CDLL("libcudart.so")
pages = ctypes.c_void_p(library.cget_managed_ptr(ctypes.c_size_t(4096)))
ctypes.memset(pages, 1, 4096)
library.cprefetch(pages, ctypes.c_size_t(4096), 0)
assert runtime.cudaMemset(pages, 7, ctypes.c_size_t(4096)) == 0
assert runtime.cudaDeviceSynchronize() == 0
assert ctypes.string_at(pages, 4096) == b"\7" * 4096
assert runtime.cudaFree(pages) == 0
