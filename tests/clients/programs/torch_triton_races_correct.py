"""A tensor goes back to PyTorch's pool after its pool was told of the other stream that uses it."""

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
    twice[(1,)](tensor, result, SIZE)
tensor.record_stream(second)
del tensor
with torch.cuda.stream(first):
    tensor = make()
    fill[(1,)](tensor, 8, SIZE)
torch.cuda.synchronize()
assert result.tolist() == [14] * SIZE
