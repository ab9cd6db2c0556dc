"""Two streams write one tensor, and nothing orders them."""

import torch

first, second = torch.cuda.Stream(), torch.cuda.Stream()
source = torch.full((1000,), 7, dtype=torch.int32).pin_memory()
tensor = torch.empty(1000, dtype=torch.int32, device="cuda")
with torch.cuda.stream(first):
    tensor.zero_()
with torch.cuda.stream(second):
    tensor.copy_(source, non_blocking=True)  # the fault
torch.cuda.synchronize()
