"""A kernel on another stream reads what a kernel writes, and nothing orders them."""

import torch

other = torch.cuda.Stream()
numbers = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()
numbers.add_(1)  # the first use
with torch.cuda.stream(other):
    total = numbers * 2  # the fault
torch.cuda.synchronize()
