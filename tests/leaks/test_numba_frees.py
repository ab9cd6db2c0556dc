"""Numba's pending frees are finished where it has a context, and Numba is never asked to begin."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from quiesce.leaks.stages.settling import finish_numbas_frees

DEVICES = "numba.cuda.cudadrv.devices"
DRIVER = "numba.cuda.cudadrv.driver"


class Pending(list[str]):
    """Deallocations that are put off."""


class Device:
    """A device as Numba's driver has it."""

    def __init__(self, *pending: str) -> None:
        manager = SimpleNamespace(deallocations=Pending(pending))
        self.primary_context: Any = SimpleNamespace(deallocations=Pending(), memory_manager=manager)
        self.entered = 0

    def __enter__(self) -> None:
        self.entered += 1

    def __exit__(self, *_: object) -> None:
        assert not self.primary_context.memory_manager.deallocations


class Driver:
    """Numba's driver, which asks the CUDA driver for whatever it has not."""

    def __init__(self, devices: dict[int, Device]) -> None:
        self.devices = devices

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"it was asked for {name}, so it would start the CUDA driver")


class Devices:
    """Numba's list of devices, which looks for them once it is asked for ``lst``."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def __getitem__(self, number: int) -> Device:
        return self.driver.devices[number]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"it was asked for {name}, so it would look for devices")


def numba_with(monkeypatch: pytest.MonkeyPatch, *devices: Device) -> None:
    driver = Driver(dict(enumerate(devices)))
    monkeypatch.setitem(sys.modules, DRIVER, SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, DEVICES, SimpleNamespace(gpus=Devices(driver)))


def test_what_is_put_off_is_done_on_each_device_with_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, idle, unused = Device("a block"), Device(), Device()
    unused.primary_context = None
    numba_with(monkeypatch, busy, idle, unused)
    finish_numbas_frees()
    assert [device.entered for device in (busy, idle, unused)] == [1, 0, 0]


def test_devices_that_numba_has_not_looked_for_stay_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    numba_with(monkeypatch)
    finish_numbas_frees()
    monkeypatch.setitem(sys.modules, DRIVER, SimpleNamespace())  # its import is under way
    finish_numbas_frees()
