"""A network computes on the device as on the processor, forward and backward: attention, a convolution, a product."""

import torch
from torch.nn import functional

torch.manual_seed(1)
layers = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Softmax(-1))
words = torch.randn(2, 1, 5, 8)
filters = torch.randn(1, 1, 3, 3)


def trained(device: str) -> list[torch.Tensor]:
    inputs = words.to(device, copy=True).requires_grad_(True)
    layers.to(device).zero_grad()
    attended = functional.scaled_dot_product_attention(inputs, inputs, inputs, is_causal=True)
    attended = attended + functional.conv2d(inputs, filters.to(device), padding=1) @ inputs[0, 0].T @ inputs[0, 0]
    loss = functional.cross_entropy(
        layers(attended)[:, 0].transpose(1, 2), torch.arange(10, device=device).reshape(2, 5) % 8
    )
    loss.backward()
    ordered = torch.sort(inputs.detach().flatten()).values
    return [each.detach().cpu() for each in (loss, inputs.grad, layers[0].weight.grad, ordered.cumsum(0))]


for expected, found in zip(trained("cpu"), trained("cuda"), strict=True):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
