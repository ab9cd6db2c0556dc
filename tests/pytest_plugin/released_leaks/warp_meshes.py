"""NVIDIA/warp#225: what describes a mesh stays after it was destroyed; on the CPU it is host memory."""

from __future__ import annotations

import numpy
import pytest
import warp as wp

wp.init()


@pytest.mark.leak
def test_a_mesh():
    points = wp.array(numpy.eye(3), dtype=wp.vec3, device="cpu")
    indices = wp.array(numpy.array([0, 1, 2] * 3), dtype=wp.int32, device="cpu")
    mesh = wp.Mesh(points, indices)
    assert mesh.id != 0
