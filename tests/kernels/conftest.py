"""Each test of a kernel runs it twice: compiled as usual, and as a kernel that is launched often."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.kernels import executor

if os.environ.get("QUIESCE_KERNELS_ON") == "cuda":  # before any test module imports it
    from tests.kernels import on_device

    executor.Kernel = on_device.Kernel  # type: ignore[assignment,misc]


@pytest.fixture(autouse=True, params=[False, True], ids=["usual", "tuned"])
def tuned(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Choose how kernels are compiled."""
    executor.tuned[0] = request.param
    yield request.param
    executor.tuned[0] = False
