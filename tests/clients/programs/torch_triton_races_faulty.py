"""A tensor goes back to PyTorch's pool while another stream may still use it."""

import torch
import triton
import triton.language as tl

SIZE = 1024


@triton.jit
def fill(array, value, size: tl.constexpr):
    """Write one number everywhere."""
    tl.store(array + tl.arange(0, size), value)


@triton.jit
def twice(array, result, size: tl.constexpr):
    """Write twice the numbers of an array."""
    at = tl.arange(0, size)
    tl.store(result + at, 2 * tl.load(array + at))


def make():
    return torch.empty(SIZE, dtype=torch.int32, device="cuda")


first, second = torch.cuda.Stream(), torch.cuda.Stream()
result = make()
torch.cuda.synchronize()
with torch.cuda.stream(first):
    tensor = make()
    fill[(1,)](tensor, 7, SIZE)
second.wait_stream(first)
with torch.cuda.stream(second):
    twice[(1,)](tensor, result, SIZE)  # the first use
address = tensor.data_ptr()
del tensor  # without record_stream(second)
with torch.cuda.stream(first):
    tensor = make()
    assert tensor.data_ptr() == address
    fill[(1,)](tensor, 8, SIZE)  # the fault
torch.cuda.synchronize()
assert result.tolist() == [14] * SIZE
