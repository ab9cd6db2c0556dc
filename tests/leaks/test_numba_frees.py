"""Numba's pending frees are finished where it has a context, and Numba is never asked to begin."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from quiesce.leaks.numba_frees import finish_numbas_frees

MODULE = "numba.cuda.cudadrv.devices"


class Pending(list[str]):
    """Deallocations that are put off."""


class Device:
    """A device as Numba has it: a context manager that makes its primary context current."""

    def __init__(self, *pending: str) -> None:
        manager = SimpleNamespace(deallocations=Pending(pending))
        self.primary_context: Any = SimpleNamespace(deallocations=Pending(), memory_manager=manager)
        self.entered = 0

    def __enter__(self) -> None:
        self.entered += 1

    def __exit__(self, *_: object) -> None:
        assert not self.primary_context.memory_manager.deallocations


class Devices:
    """Numba's list of devices, which looks for them once it is asked for ``lst``."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"it was asked for {name}, so it would look for devices")

    def __iter__(self) -> Any:
        return iter(self.lst)


def test_what_is_put_off_is_done_on_each_device_with_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, idle, unused = Device("a block"), Device(), Device()
    unused.primary_context = None
    devices = Devices()
    vars(devices)["lst"] = [busy, idle, unused]
    monkeypatch.setitem(sys.modules, MODULE, SimpleNamespace(gpus=devices))
    finish_numbas_frees()
    assert [device.entered for device in (busy, idle, unused)] == [1, 0, 0]


def test_devices_that_numba_has_not_looked_for_stay_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, SimpleNamespace(gpus=Devices()))
    finish_numbas_frees()
    monkeypatch.setitem(sys.modules, MODULE, SimpleNamespace())  # its import is under way
    finish_numbas_frees()
