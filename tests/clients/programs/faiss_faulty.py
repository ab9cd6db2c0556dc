"""Vectors are read on the device while another stream writes them."""

import ctypes

import faiss

runtime = ctypes.CDLL("libcudart.so")
block, stream = ctypes.c_void_p(), ctypes.c_void_p()
runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(3200))
runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
resources = faiss.StandardGpuResources()
index = faiss.GpuIndexFlatL2(resources, 8)
runtime.cudaMemsetAsync(block, 0, ctypes.c_size_t(3200), stream)
index.add_c(100, faiss.cast_integer_to_float_ptr(block.value))  # the fault
