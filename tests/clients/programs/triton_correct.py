"""A kernel is compiled and launched."""

import ctypes

import triton
import triton.language as tl


@triton.jit
def fill(array, size: tl.constexpr):
    """Write sevens."""
    tl.store(array + tl.arange(0, size), 7)


class Array:
    """A block of the device, as Triton takes it."""

    dtype = "i32"

    def __init__(self, size):
        self.address = ctypes.c_void_p()
        runtime.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(4 * size))

    def data_ptr(self):
        """Return the address."""
        return self.address.value


runtime = ctypes.CDLL("libcudart.so")
array = Array(1024)
fill[(1,)](array, 1024)
assert runtime.cudaDeviceSynchronize() == 0
assert runtime.cudaFree(array.address) == 0
