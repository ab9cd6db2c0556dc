"""Which bytes of two kernels race: exactly those that both touched, in however many places."""

from __future__ import annotations

import pytest
from tests.simulator.kernel_programs import ADD
from tests.simulator.test_kernel_races import LOAD, NON_BLOCKING, OWN, STORE, MakeDevice

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

EVERY_OTHER = OWN.format(stride=8) + "st.global.u32 [%rd1], %r1;"
EVERY_BYTE = OWN.format(stride=2) + "st.global.u8 [%rd1], %r1;"
EVERY_THIRD = OWN.format(stride=12) + "st.global.u32 [%rd1], %r1;"


@pytest.mark.parametrize(("body", "step"), [(EVERY_OTHER, 4), (EVERY_BYTE, 1), (EVERY_THIRD, 4), (STORE, 256)])
def test_only_bytes_that_both_use_race(checked: MakeDevice, body: str, step: int) -> None:
    given = checked()
    words = given.words(*[0] * 4096)
    first, second = (given.client.make("StreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    given.client.ok("DeviceSynchronize")
    given.work(body, words, stream=first, block=64)
    given.work(body, words + step, stream=second, block=64)
    assert given.rules() == []
    given.work(body, words + step, stream=first, block=1)
    (finding,) = given.findings()
    used = 1 if body is EVERY_BYTE else 4
    assert f"both use {used} byte{'s' if used > 1 else ''} at {words + step:#x}, {step:,} byte" in finding.observed


def test_a_race_in_many_blocks_of_threads(checked: MakeDevice) -> None:
    given = checked()
    count = 1 << 16
    words = given.words(*[0] * (2 * count))
    first, second = (given.client.make("StreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    given.client.ok("DeviceSynchronize")
    place = "mov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r1, %r2, 256, %r1;\n"
    given.work(place + EVERY_OTHER, words, stream=first, block=256, grid=count // 256)
    given.work(place + EVERY_OTHER, words + 4, stream=second, block=256, grid=count // 256)
    assert given.rules() == []
    given.work(place + LOAD, words, stream=second, block=256, grid=count // 128)
    (finding,) = given.findings()
    assert f"both use {4 * count:,} bytes (256 KiB)" in finding.observed


TWO_STORES = OWN.format(stride=4) + (
    "shr.u32 %r3, %r1, 7;\nand.b32 %r3, %r3, 1;\nsetp.eq.u32 %p1, %r3, 0;\n"
    "@%p1 st.global.u32 [%rd1], %r1;\n@!%p1 st.global.u32 [%rd1], 1;"
)
"""Another instruction writes each next 512 bytes."""


def test_a_large_array_that_two_instructions_write_in_turn(checked: MakeDevice) -> None:
    given = checked()
    count = 1 << 20
    words = given.client.make("Malloc", 4 * count)
    first, second = (given.client.make("StreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    place = "mov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r1, %r2, 256, %r1;\n"
    given.work(place + TWO_STORES, words, stream=first, block=256, grid=count // 256)
    given.work(STORE, words + 2 * count, stream=second, block=64)
    (finding,) = given.findings()
    assert f"both use 256 bytes at {words + 2 * count:#x}" in finding.observed


def test_a_kernel_that_is_launched_often(checked: MakeDevice) -> None:
    """Its blocks are loops over threads, whose accesses are judged as ranges."""
    given = checked()
    count, launches = 1 << 15, 130
    words = given.words(*[0] * (2 * count))
    first, second = (given.client.make("StreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    given.client.ok("DeviceSynchronize")
    add = given.kernel(ADD, "add")
    for _ in range(launches):
        given.ok(add, count // 256, 256, words, 1, count - 7, stream=first)
    given.client.ok("DeviceSynchronize")
    given.ok(add, count // 256, 256, words, 1, count - 7, stream=first)
    given.ok(add, count // 256, 256, words + 4 * (count - 7), 1, count, stream=second)
    assert given.rules() == []
    given.ok(add, count // 256, 256, words + 4 * (count - 8), 1, count, stream=second)
    (finding,) = given.findings()
    assert f"both use 4 bytes at {words + 4 * (count - 8):#x}" in finding.observed
    assert given.read(words, 1) == [launches + 1]
