"""A kernel of one stream reads what one of another stream writes, and nothing orders the two."""

import ctypes

import triton
import triton.language as tl

SIZE = 1024


@triton.jit
def fill(array, size: tl.constexpr):
    """Write sevens."""
    tl.store(array + tl.arange(0, size), 7)


@triton.jit
def twice(array, result, size: tl.constexpr):
    """Write twice the numbers of an array."""
    at = tl.arange(0, size)
    tl.store(result + at, 2 * tl.load(array + at))


class Array:
    """A block of the device, as Triton takes it."""

    dtype = "i32"

    def __init__(self):
        self.address = ctypes.c_void_p()
        runtime.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(4 * SIZE))

    def data_ptr(self):
        """Return the address."""
        return self.address.value


runtime = ctypes.CDLL("libcudart.so")
first, second, written = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
runtime.cudaStreamCreate(ctypes.byref(first))
runtime.cudaStreamCreate(ctypes.byref(second))
runtime.cudaEventCreate(ctypes.byref(written))
array, result, found = Array(), Array(), (ctypes.c_int * SIZE)()
current = first
triton.runtime.driver.active.get_current_stream = lambda device: current.value
fill[(1,)](array, SIZE)  # the first use
runtime.cudaEventRecord(written, first)
current = second
twice[(1,)](array, result, SIZE)  # the fault
runtime.cudaDeviceSynchronize()
runtime.cudaMemcpy(found, result.address, ctypes.c_size_t(4 * SIZE), 2)
assert set(found) == {14}
for block in (array, result):
    runtime.cudaFree(block.address)
runtime.cudaEventDestroy(written)
runtime.cudaStreamDestroy(first)
runtime.cudaStreamDestroy(second)
