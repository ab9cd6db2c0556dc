"""Tensors, streams, an event and pinned memory, in order."""

import torch

first, second = torch.cuda.Stream(), torch.cuda.Stream()
earlier, later = (torch.full((1000,), value, dtype=torch.int32).pin_memory() for value in (1, 7))
tensor = torch.empty(1000, dtype=torch.int32, device="cuda")
with torch.cuda.stream(first):
    tensor.copy_(earlier, non_blocking=True)
second.wait_event(first.record_event())
with torch.cuda.stream(second):
    tensor.copy_(later, non_blocking=True)
second.synchronize()
assert (tensor.cpu() == 7).all()
