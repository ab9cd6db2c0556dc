"""A kernel finds the address of a tensor in a table, and the tensor is dropped before."""

import torch
import triton
import triton.language as tl

SIZE = 1024


@triton.jit
def fill(array, value, size: tl.constexpr):
    """Write one number everywhere."""
    tl.store(array + tl.arange(0, size), value)


@triton.jit
def twice(table, result, size: tl.constexpr):
    """Write twice the numbers of the array whose address is in a table."""
    at = tl.arange(0, size)
    array = tl.load(table).to(tl.pointer_type(tl.int32))
    tl.store(result + at, 2 * tl.load(array + at))


def make():
    return torch.empty(SIZE, dtype=torch.int32, device="cuda")


tensor, result = make(), make()
fill[(1,)](tensor, 7, SIZE)
table = torch.tensor([tensor.data_ptr()]).cuda()
del tensor
twice[(1,)](table, result, SIZE)  # the fault
torch.cuda.synchronize()
