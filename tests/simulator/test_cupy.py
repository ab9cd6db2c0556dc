"""Stock CuPy wheels on the simulated runtime: red and green as their releases are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from .cupy_wheels import NEEDS_A_WHEEL, Release, release

pytestmark = NEEDS_A_WHEEL
__all__ = ["release"]

IMPORT: Final = "import numpy, cupy, cupyx, ctypes, sys\n"
PINNED: Final = IMPORT + (
    "a = cupyx.empty_pinned((1 << 20,), dtype=numpy.float64)\n"
    "a[:] = numpy.arange(1 << 20)\n"
    "b = cupy.asarray(a)\n"
    "assert (b.get() == a).all()\n"
)
PAGEABLE: Final = IMPORT + "x = numpy.arange(1000.0)\nassert (cupy.asarray(x).get() == x).all()\n"
TOLD_APART: Final = IMPORT + (
    "def says(array):\n"
    "    try: return cupy.cuda.pinned_memory.is_memory_pinned(array.ctypes.data)\n"
    "    except cupy.cuda.runtime.CUDARuntimeError: return 'refused'\n"
    "if not hasattr(cupy.cuda.pinned_memory, 'is_memory_pinned'): sys.exit('it never asks')\n"
    "print(says(cupyx.empty_pinned((1000,), 'u1')), says(numpy.empty(1000, 'u1')))\n"
)
POOLS: Final = IMPORT + (
    "pool = cupy.cuda.MemoryPool()\n"
    "cupy.cuda.set_allocator(pool.malloc)\n"
    "blocks = [cupy.empty(size, dtype='u1') for size in (100, 5000, 1 << 20)]\n"
    "assert pool.used_bytes() == 512 + 5120 + (1 << 20)\n"
    "del blocks\n"
    "assert pool.used_bytes() == 0 < pool.total_bytes()\n"
    "pool.free_all_blocks()\n"
    "assert pool.total_bytes() == 0\n"
    "stream, event = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()\n"
    "with stream:\n"
    "    data = cupy.empty(1000, dtype='u1')\n"
    "    data.data.memset_async(7, 1000)\n"
    "    event.record()\n"
    "event.synchronize()\n"
    "assert (data.get() == 7).all()\n"
)
IN_FLIGHT: Final = IMPORT + (
    "a = cupyx.empty_pinned((1 << 20,), dtype=numpy.uint8)\n"
    "a[:] = 1\n"
    "stream = cupy.cuda.Stream(non_blocking=True)\n"
    "with stream: b = cupy.asarray(a)\n"
    "del a\n"
    "c = cupyx.empty_pinned((1 << 20,), dtype=numpy.uint8)\n"
    "c[:] = 2\n"
    "stream.synchronize()\n"
    "print('the device holds', set(b.get().tolist()))\n"
)
OUT_OF_MEMORY: Final = IMPORT + (
    "try:\n"
    "    cupy.empty(1 << 22, dtype='u1')\n"
    "except cupy.cuda.memory.OutOfMemoryError:\n"
    "    sys.exit(0)\n"
    "sys.exit('it was allocated')\n"
)


def run(release: Release, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run_words(release, ["-c", text], *options)


def run_words(release: Release, words: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", release.flavour, *options]
    return subprocess.run([*command, "--", sys.executable, *words], capture_output=True, text=True, check=False)


def test_a_pinned_source_is_copied_as_this_release_copies_it(release: Release) -> None:
    done = run(release, PINNED)
    assert ("rule:      pinned_sources_are_copied_directly" in done.stdout) is release.staged_again, done.stderr
    assert done.returncode == int(release.staged_again), done.stderr
    assert done.stderr.count(" in 1 block of pinned memory from") == release.pinned_blocks  # a line each


def test_a_pageable_source_is_taken_as_this_release_takes_it(release: Release) -> None:
    done = run(release, PAGEABLE)
    assert ("hipErrorInvalidValue" in done.stderr) is release.refuses_pageable
    assert done.returncode == (2 if release.refuses_pageable else 0), done.stderr


def test_kinds_of_memory_are_told_apart_as_this_release_does(release: Release) -> None:
    done = run(release, TOLD_APART)
    if release.says_of_memory is None:
        assert "it never asks" in done.stderr
    else:
        assert done.stdout.splitlines()[0] == release.says_of_memory


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_pinned_source_that_is_dropped_in_flight(release: Release, schedule: str) -> None:
    holds = "{2}" if release.hands_out_in_flight and schedule == "lazy" else "{1}"
    assert f"the device holds {holds}" in run(release, IN_FLIGHT, "--schedule", schedule).stdout


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
def test_pools_streams_and_events_work(release: Release, schedule: str) -> None:
    done = run(release, POOLS, "--schedule", schedule)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_device_has_the_capacity_that_was_asked_for(release: Release) -> None:
    done = run(release, OUT_OF_MEMORY, "--capacity", "2MiB")
    assert done.returncode == 2, "nothing but a refused request was tested"
    assert "all requests for memory were refused" in done.stdout


def test_a_failure_on_demand_reaches_the_program(release: Release) -> None:
    done = run(release, PAGEABLE.replace("x = ", "cupy.cuda.Event(); cupy.cuda.Event(); x = "), "--fail", "event:2=46")
    assert done.returncode == 2
    assert "Error" in done.stderr


def test_a_function_that_is_not_simulated_fails_by_name(release: Release) -> None:
    prefix = "hip" if release.flavour.startswith("hip") else "cu"
    done = run(release, IMPORT + "cublas = cupy.cuda.cublas; cublas.snrm2(cublas.create(), 0, 0, 1, 0)\n")
    assert f"{prefix}blasSnrm2" in done.stderr
    assert "is not simulated" in done.stderr


SHARED: Final = """
import multiprocessing, sys
import cupy, numpy
from cupy.cuda import runtime

def consume(handle, done):
    pointer = runtime.ipcOpenMemHandle(handle)
    memory = cupy.cuda.UnownedMemory(pointer, 8000, None)
    array = cupy.ndarray(1000, dtype=numpy.int64, memptr=cupy.cuda.MemoryPointer(memory, 0))
    assert (array.get() == numpy.arange(1000)).all()
    array.set(numpy.ones(1000, dtype=numpy.int64))
    if "hurries" not in sys.argv:
        cupy.cuda.Device().synchronize()
        runtime.ipcCloseMemHandle(pointer)
    done.send(True)
    done.recv()

if __name__ == "__main__":
    array = cupy.asarray(numpy.arange(1000))
    cupy.cuda.Device().synchronize()
    here, there = multiprocessing.get_context("spawn").Pipe()
    arguments = runtime.ipcGetMemHandle(array.data.ptr), there
    child = multiprocessing.get_context("spawn").Process(target=consume, args=arguments)
    child.start()
    assert here.recv()
    back = array.get()
    assert "hurries" in sys.argv or (back == 1).all()
    here.send(True)
    child.join()
"""


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_an_array_is_shared_between_processes(release: Release, schedule: str, tmp_path: Path) -> None:
    program = tmp_path / "shared.py"
    program.write_text(SHARED, encoding="utf-8")
    done = run_words(release, [str(program)], "--schedule", schedule)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_words(release, [str(program), "hurries"], "--schedule", schedule)
    assert "rule:      conflicting_uses_are_ordered" in done.stdout, done.stdout + done.stderr
    assert f"{program}:11 in consume" in done.stdout
    assert f"{program}:26 in <module>" in done.stdout
