"""Each test of a kernel runs it in each way of compiling: by threads, by blocks of threads, by rows of threads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

import pytest
from tests.kernels import executor

from quiesce.simulator.kernels.translation import pipeline

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


@pytest.fixture(autouse=True, params=["usual", "tuned", "wide"])
def tuned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Choose how kernels are compiled. By rows all are that can be, also with checks."""
    executor.tuned[0], executor.wide[0] = request.param != "usual", request.param == "wide"
    if request.param == "wide":
        monkeypatch.setattr(pipeline, "is_worth_rows", lambda *_: True)
    yield executor.tuned[0]
    executor.tuned[0] = executor.wide[0] = False
