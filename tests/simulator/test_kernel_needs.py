"""What clients are told of kernels that compute: memory, threads, and how many blocks run at the same time."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.kernel_programs import Device, MakeDevice, entry

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MOST_THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, PTX_VERSION, BINARY_VERSION, DYNAMIC = 0, 1, 2, 3, 4, 5, 6, 8
TOO_LARGE = 720
BODY: Final = """.shared .align 4 .b8 block[20000];
.local .align 4 .b8 own[24];
mov.u64 %rd2, own;
cvta.local.u64 %rd2, %rd2;
ld.param.u64 %rd1, [to];
ld.const.u32 %r1, [first];
st.u32 [%rd2+4], %r1;
st.shared.u32 [block], %r1;
ld.u32 %r2, [%rd2+4];
ld.const.u32 %r3, [second+4];
add.u32 %r1, %r2, %r3;
st.global.u32 [%rd1], %r1;"""
CONSTANTS: Final = ".const .u32 first = 3;\n.const .u32 second[3] = {1, 2, 3};\n.const .u32 unused[100];\n"
KERNEL: Final = CONSTANTS + entry("work", ".param .u64 to", BODY).replace(")\n{", ")\n.maxntid 64, 2\n{")


def attribute(given: Device, function: ctypes.c_void_p, number: int) -> int:
    value = ctypes.c_int(-7)
    assert given.driver.cuFuncGetAttribute(ctypes.byref(value), number, function) == 0
    again = ctypes.c_int(-7)
    assert given.driver.cuKernelGetAttribute(ctypes.byref(again), number, function, 0) == 0
    assert again.value == value.value
    return value.value


def blocks(given: Device, function: ctypes.c_void_p, threads: int, shared_bytes: int) -> int:
    value = ctypes.c_int(-7)
    call = given.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
    assert call(ctypes.byref(value), function, threads, ctypes.c_size_t(shared_bytes)) == 0
    return value.value


def test_attributes_are_those_of_the_ptx(device: MakeDevice) -> None:
    given = device()
    function = given.kernel(KERNEL, "work")
    found = {number: attribute(given, function, number) for number in range(9)}
    assert found == {
        MOST_THREADS: 128,
        SHARED: 20000,
        CONSTANT: 16,
        LOCAL: 24,
        REGISTERS: 32,
        PTX_VERSION: 80,
        BINARY_VERSION: 80,
        7: 0,
        DYNAMIC: 49152 - 20000,
    }
    to = given.words(0)
    given.ok(function, 1, 1, to)
    assert given.read(to, 1) == [5]


def test_a_kernel_that_is_only_asked_about_is_not_said_to_compute_nothing(
    device: MakeDevice, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = device()
    function = given.kernel(entry("work", "", "frobnicate.b32 %r1, %r2;"), "work")
    assert (attribute(given, function, MOST_THREADS), attribute(given, function, CONSTANT)) == (1024, 0)
    assert "does not compute" not in capfd.readouterr().err
    given.ok(function, 1, 1)
    given.ok(function, 1, 1)
    assert capfd.readouterr().err.count("does not compute") == 1
    (log,) = folder.glob("*.uncomputed")
    log.unlink()


def test_occupancy_counts_the_memory_of_the_kernel(device: MakeDevice) -> None:
    given = device()
    function = given.kernel(KERNEL, "work")
    assert blocks(given, function, 32, 0) == 7, (
        "a multiprocessor has 164 KiB, and the system takes 1 KiB for each block"
    )
    assert blocks(given, function, 32, 10_000) == 5
    assert blocks(given, function, 32, 30_000) == 0, "more than 48 KiB, which nobody allowed"
    assert blocks(given, function, 129, 0) == 0
    grid, block = ctypes.c_int(), ctypes.c_int()
    size = given.driver.cuOccupancyMaxPotentialBlockSize
    assert size(ctypes.byref(grid), ctypes.byref(block), function, None, ctypes.c_size_t(0), 0) == 0
    assert (grid.value, block.value) == (448, 128)


def test_a_cooperative_launch_fits_as_the_occupancy_says(device: MakeDevice) -> None:
    given = device()
    function, to = given.kernel(KERNEL, "work"), given.words(0)
    kept = ctypes.c_uint64(to)
    passed = (ctypes.c_void_p * 1)(ctypes.addressof(kept))
    launch = given.driver.cuLaunchCooperativeKernel
    assert launch(function, 449, 1, 1, 32, 1, 1, 0, None, passed) == TOO_LARGE
    assert given.read(to, 1) == [0]
    assert launch(function, 448, 1, 1, 32, 1, 1, 0, None, passed) == 0
    assert given.read(to, 1) == [5]
    assert launch(function, 321, 1, 1, 32, 1, 1, 10_000, None, passed) == TOO_LARGE
    given.ok(function, 1000, 32, to)  # a launch that is not cooperative may be larger
