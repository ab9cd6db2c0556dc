"""The driver's figure of memory in use, as a real GPU has no other: read where a context is, and coarse."""

from __future__ import annotations

import _ctypes
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.conftest import Start, library, start

from quiesce.leaks.meters.driver_memory import DriverMemoryMeter, Loads
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import FREE_MEMORY, Quantity, kind_of_leak
from quiesce.leaks.readings import Readings

from .meters import ToldMeter

__all__ = ["library", "start"]

MIB: Final = 1 << 20


def figures(meter: DriverMemoryMeter) -> dict[str, int]:
    return {quantity.name: value for quantity, value in meter.read().items()}


def test_nothing_is_read_before_a_driver_is_loaded() -> None:
    meter = DriverMemoryMeter(("libno-driver.so.1",), ())
    assert meter.absent() == "no driver of a GPU is loaded"
    assert meter.read() == {}


def test_libraries_are_looked_for_only_after_one_was_loaded(tmp_path: Path) -> None:
    loads = Loads()
    assert [loads.are_new() for _ in range(3)] == [True, False, False]
    ctypes.CDLL(str(shutil.copy(_ctypes.__file__, tmp_path)))
    assert [loads.are_new() for _ in range(2)] == [True, False]


def test_cuda_is_asked_of_devices_with_a_context_and_left_as_it_was(start: Start, library: str) -> None:
    client = start("cuda:12", devices=3)
    meter = DriverMemoryMeter((library,), ())
    assert meter.absent() == ""
    assert figures(meter) == {}, "nobody has initialised it"
    client.ok("SetDevice", 2)
    client.make("Malloc", 64 * MIB)
    client.ok("SetDevice", 0)
    client.make("Malloc", 32 * MIB)
    before = len(list(client.machine.ledger.live()))
    first = figures(meter)
    client.make("Malloc", 8 * MIB)
    grown = {name: value - first[name] for name, value in figures(meter).items()}
    assert grown["memory in use on device 0 (the GPU driver's figure)"] == 8 * MIB
    assert grown["memory in use on device 2 (the GPU driver's figure)"] == 0
    assert len(list(client.machine.ledger.live())) == before + 1
    device = ctypes.c_int(-1)
    client.ok("GetDevice", ctypes.byref(device))
    assert device.value == 0


def test_hip_is_asked_of_the_current_device(start: Start, library: str) -> None:
    client = start("hip:6")
    meter = DriverMemoryMeter((), (library,))
    client.make("Malloc", 2 * MIB)
    (first,) = figures(meter).values()
    client.make("Malloc", 4 * MIB)
    assert list(figures(meter).values()) == [first + 4 * MIB]


def readings_of(values: list[int]) -> tuple[Readings, Quantity]:
    numbers = iter(values)
    meter = ToldMeter(lambda: next(numbers), FREE_MEMORY, "bytes")
    readings = Readings([meter], Plan())
    for _ in values:
        readings.take()
    return readings, meter.quantity


@pytest.mark.long
@pytest.mark.parametrize(
    ("values", "leaks"),
    [
        pytest.param([2 * MIB * (step // 2) for step in range(24)], True, id="a granule every other round"),
        pytest.param([2 * MIB * (step // 12) for step in range(36)], False, id="too little to tell from noise"),
        pytest.param([2 * MIB * (step - 3 * (step == 11)) for step in range(24)], False, id="it fell once"),
        pytest.param([64 * MIB * (step > 8) for step in range(24)], False, id="another process came"),
    ],
)
def test_growth_must_be_large_and_never_fall(values: list[int], leaks: bool) -> None:
    readings, quantity = readings_of(values)
    assert readings.leaks(quantity) is leaks


SUITE: Final = """
import ctypes, os, pytest

runtime = ctypes.CDLL("libcudart.so.12")
driver = ctypes.CDLL("libcuda.so.1")  # as a real runtime loads it
runtime.cudaFree(None)  # the machine starts as quiesce exec says, and from here on looks like a GPU
del os.environ["QUIESCE_SIMULATOR"]

def taken(size_bytes):
    block = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(size_bytes)) == 0
    return block

@pytest.mark.leak
def test_loses_a_block():
    taken(1 << 20)

@pytest.mark.leak
def test_frees_it():
    runtime.cudaFree(taken(8 << 20))

CACHE = []

@pytest.mark.leak
def test_fills_a_cache():
    if len(CACHE) < 20:
        CACHE.append(taken(4 << 20))
"""


@pytest.mark.long
def test_a_leak_is_told_without_a_ledger_and_called_coarse(library: str, tmp_path: Path) -> None:
    assert library
    (tmp_path / "test_device.py").write_text(SUITE, encoding="utf-8")
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:12", "--"]
    program = [sys.executable, "-m", "pytest", "-q", "--quiesce-report=out", "--quiesce-leak-rounds=24"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [*command, *program, "test_device.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    results: dict[str, Any] = {
        record["case"].partition("::")[2]: record for record in map(json.loads, lines) if "case" in record
    }
    found = {name: [each["kind"] for each in record["findings"]] for name, record in results.items()}
    assert found == {
        "test_loses_a_block": [kind_of_leak(FREE_MEMORY)],
        "test_frees_it": [],
        "test_fills_a_cache": [],
    }, done.stdout
    (finding,) = results["test_loses_a_block"]["findings"]
    assert "(the GPU driver's figure) grows by" in finding["observed"]
    assert "quiesce exec" in finding["allocated_by"]
