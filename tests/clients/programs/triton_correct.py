"""A kernel is compiled and launched, and its result is right."""

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

    def data_ptr(self):
        """Return the address."""
        return block.value


runtime = ctypes.CDLL("libcudart.so")
block, found = ctypes.c_void_p(), (ctypes.c_int * 1024)()
runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(4096))
fill[(1,)](Array(), 1024)
runtime.cudaMemcpy(found, block, ctypes.c_size_t(4096), 2)
assert set(found) == {7}
runtime.cudaFree(block)
