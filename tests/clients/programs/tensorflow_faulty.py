"""Another stream writes a tensor while it is read."""

import ctypes

import tensorflow

(device,) = tensorflow.config.list_physical_devices("GPU")
tensorflow.config.experimental.set_memory_growth(device, True)
runtime = ctypes.CDLL("libcudart.so")
stream = ctypes.c_void_p()
runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
with tensorflow.device("/GPU:0"):
    tensor = tensorflow.fill((1000,), 7.0)
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.argtypes, pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.POINTER(ctypes.c_void_p)
capsule = tensorflow.experimental.dlpack.to_dlpack(tensor)
(address,) = pointer_of(capsule, b"dltensor")[:1]  # the first field of a DLManagedTensor
runtime.cudaMemsetAsync(ctypes.c_void_p(address), 0, ctypes.c_size_t(4000), stream)  # the fault
tensor.numpy()
