"""Each test of a kernel runs it twice: compiled for each thread by itself, and for all threads of a block together."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

import pytest
from tests.kernels import executor

if os.environ.get("QUIESCE_KERNELS_ON") == "cuda":  # before any test module imports it
    from tests.kernels import on_device

    executor.Kernel = on_device.Kernel  # type: ignore[assignment,misc]


stack_bytes: list[int] = []
"""How much stack functions took that may call themselves, and gave back."""


def _enter(context: int, taken: int, site: int, thread: int) -> None:
    stack_bytes.append(taken)


def _leave(given_back: int) -> None:
    stack_bytes.append(-given_back)


executor.add_functions(
    {
        "quiesce_kernel_enter": ctypes.CFUNCTYPE(None, ctypes.c_void_p, *3 * [ctypes.c_uint32])(_enter),
        "quiesce_kernel_leave": ctypes.CFUNCTYPE(None, ctypes.c_uint32)(_leave),
    }
)


@pytest.fixture(autouse=True, params=[False, True], ids=["usual", "tuned"])
def tuned(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Choose how kernels are compiled."""
    executor.tuned[0] = request.param
    yield request.param
    executor.tuned[0] = False
