"""NVIDIA/warp#1589: each kernel that a factory makes anew stays after its launch."""

from __future__ import annotations

import pytest
import warp as wp

wp.init()


def make_kernel():
    @wp.kernel
    def add_one(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        i = wp.tid()
        b[i] = a[i] + 1.0

    return add_one


@pytest.mark.leak
def test_a_kernel_that_is_made_anew():
    a, b = (wp.zeros(8, dtype=float, device="cpu") for _ in range(2))
    wp.launch(make_kernel(), dim=8, inputs=[a], outputs=[b], device="cpu")
    assert b.numpy().tolist() == [1.0] * 8
