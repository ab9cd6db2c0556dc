"""Leak checks of tests that use CuPy, with a stock wheel on the simulated runtime."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.leaks.quantities import kind_of_leak

from .cupy_wheels import NEEDS_A_WHEEL, Release, release

pytestmark = NEEDS_A_WHEEL
__all__ = ["release"]

SUITE: Final = """\
import cupy, cupyx, numpy, pytest, warnings

pytestmark = pytest.mark.leak
KEPT = []

def test_keeps_an_array():
    KEPT.append(cupy.empty(5000, dtype="u1"))

def test_keeps_an_array_of_another_device():
    with cupy.cuda.Device(1):
        KEPT.append(cupy.empty(5000, dtype="u1"))

@pytest.fixture(scope="module")
def pool():
    pool = cupy.cuda.MemoryPool()
    cupy.cuda.set_allocator(pool.malloc)
    yield pool
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)

def test_keeps_an_array_of_a_pool(pool):
    KEPT.append(cupy.empty(100, dtype="u1"))

def test_keeps_pinned_memory():
    KEPT.append(cupyx.empty_pinned((1000,), dtype="u1"))

def test_gives_everything_back(pool):
    for device in (0, 1):
        with cupy.cuda.Device(device), cupy.cuda.Stream(non_blocking=True):
            array = cupy.empty(5000, dtype="u1")
            pinned = cupyx.empty_pinned((5000,), dtype="u1")
            array.data.memset_async(1, 5000)
            array.data.copy_to_host_async(pinned.ctypes.data, 5000)
"""
ORDERED: Final = """\

@pytest.fixture(scope="module")
def ordered_pool():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # before CuPy 14 it says that the pool may change
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    yield
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)

def test_keeps_an_array_of_an_ordered_pool(ordered_pool):
    KEPT.append(cupy.empty(4096, dtype="u1"))

def test_keeps_an_array_of_another_devices_ordered_pool(ordered_pool):
    with cupy.cuda.Device(1):
        KEPT.append(cupy.empty(4096, dtype="u1"))

def test_gives_back_to_an_ordered_pool(ordered_pool):
    for device in (0, 1):
        with cupy.cuda.Device(device), cupy.cuda.Stream(non_blocking=True):
            cupy.empty(5000, dtype="u1").data.memset_async(1, 5000)
"""
CAPTURES: Final = """\

def test_captures(monkeypatch):
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    try:
        assert stream.is_capturing()
    finally:
        stream.end_capture()
"""

LEAKS: Final = {
    "test_keeps_an_array": ("memory in use of CuPy's pools grows by 5,120 bytes (5 KiB) per round", "cupy.empty(5000"),
    "test_keeps_an_array_of_another_device": (
        "memory in use of CuPy's pools grows by 5,120 bytes (5 KiB) per round",
        "cupy.empty(5000",
    ),
    "test_keeps_an_array_of_a_pool": ("memory in use of CuPy's pools grows by 512 bytes per round", "cupy.empty(100"),
    "test_keeps_pinned_memory": (
        "pinned memory from CuPy's pool that is still in use grows by 1,024 bytes (1 KiB) per round",
        "cupyx.empty_pinned",
    ),
}
"""What each leaking test is told, and the line it is told."""
ORDERED_LEAKS: Final = dict.fromkeys(
    ("test_keeps_an_array_of_an_ordered_pool", "test_keeps_an_array_of_another_devices_ordered_pool"),
    ("memory in use of CuPy's pools grows by 4,096 bytes (4 KiB) per round", "cupy.empty(4096"),
)

LOW_LEVEL: Final = """\
import cupy, pytest
from cupy.cuda import runtime

pytestmark = pytest.mark.leak
KEPT = []
POOL = cupy.cuda.MemoryPool()

def test_loses_device_memory(): runtime.malloc(1 << 20)
def test_loses_pinned_memory(): runtime.hostAlloc(1 << 20, 0)
def test_loses_a_stream(): runtime.streamCreate()
def test_loses_an_event(): runtime.eventCreate()
def test_keeps_an_array(): KEPT.append(cupy.empty(1 << 18))
def test_keeps_a_pool():
    pool = cupy.cuda.MemoryPool()
    KEPT.append(pool)
    block = pool.malloc(1 << 20)
    del block

def test_frees_device_memory(): runtime.free(runtime.malloc(1 << 20))
def test_frees_pinned_memory(): runtime.freeHost(runtime.hostAlloc(1 << 20, 0))
def test_destroys_a_stream(): runtime.streamDestroy(runtime.streamCreate())
def test_destroys_an_event(): runtime.eventDestroy(runtime.eventCreate())
def test_drops_an_array(): cupy.empty(1 << 18)
def test_drops_a_pool(): cupy.cuda.MemoryPool().malloc(1 << 20)
def test_uses_a_pool_that_comes_to_rest(): [POOL.malloc(size << 12) for size in range(1, 20)]
"""
LOW_LEVEL_LEAKS: Final = {
    "test_loses_device_memory": "device",
    "test_loses_pinned_memory": "pinned",
    "test_loses_a_stream": "streams",
    "test_loses_an_event": "events",
    "test_keeps_an_array": "cupy",
    "test_keeps_a_pool": "device",
}

CAPTURING: Final = """\
import cupy
from quiesce.leaks.meters.libraries import CupyMeter
stream, meter = cupy.cuda.Stream(), CupyMeter()
kept = cupy.empty(5000, dtype="u1")
stream.begin_capture()
meter.settle()
print(sorted(meter.read().values()))
stream.end_capture()
"""


def simulated(release: Release, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", release.flavour, "--devices", "2", "--"]
    return subprocess.run(
        [*command, sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def results_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results of a run by the name of the test."""
    lines = (folder / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["case"].partition("::")[2]: record for record in map(json.loads, lines) if "case" in record}


def test_each_leak_is_told_once_for_what_it_is(release: Release, tmp_path: Path) -> None:
    (tmp_path / "test_device.py").write_text(LOW_LEVEL, encoding="utf-8")
    done = simulated(release, tmp_path, "-m", "pytest", "-q", "--quiesce-report=out", "--quiesce-leak-rounds=12")
    results = results_in(tmp_path)
    told = {name: [each["kind"] for each in record["findings"]] for name, record in results.items()}
    expected = {name: [kind_of_leak(LOW_LEVEL_LEAKS[name])] if name in LOW_LEVEL_LEAKS else [] for name in results}
    assert told == expected, done.stdout
    assert set(LOW_LEVEL_LEAKS) < set(results)


def test_leaks_of_every_pool_are_told_from_what_comes_back(release: Release, tmp_path: Path) -> None:
    suite = SUITE + ORDERED * release.has_ordered_pools + CAPTURES * release.captures
    leaks = LEAKS | ORDERED_LEAKS if release.has_ordered_pools else LEAKS
    (tmp_path / "test_device.py").write_text(suite, encoding="utf-8")
    done = simulated(release, tmp_path, "-m", "pytest", "-q", "--quiesce-report=out", "--quiesce-leak-rounds=12")
    results = results_in(tmp_path)
    assert {name for name, record in results.items() if record["verdict"] != "passed"} == set(leaks), done.stdout
    for name, (says, line) in leaks.items():
        finding = results[name]["findings"][0]
        assert finding["observed"] == says
        assert finding["kind"] == "memory leak (CuPy's pools)"
        assert line in finding["allocated_by"]


def test_a_capture_is_neither_ended_nor_waited_for(release: Release, tmp_path: Path) -> None:
    if not release.captures:
        pytest.skip("this release refuses to capture streams on HIP")
    done = simulated(release, tmp_path, "-c", CAPTURING)
    assert "[0, 5120, 5120]" in done.stdout, done.stdout + done.stderr


def test_a_machine_without_a_device_is_no_error(release: Release, tmp_path: Path) -> None:
    start = "import cupy; from quiesce.leaks.meters.libraries import CupyMeter"
    text = f"{start}; m = CupyMeter(); m.settle(); print(m.read())"
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", release.flavour, "--fail", "device:1+"]
    done = subprocess.run([*command, "--", sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout.count(": 0") == 3, done.stdout + done.stderr
