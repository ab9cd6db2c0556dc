"""Kernels whose accesses are judged for all threads of a block at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import KERNELS_INSIDE, KERNELS_NOT_FREED, KERNELS_READ_WRITTEN
from quiesce.simulator.kernels.server import ONE_BY_ONE_VARIABLE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
COPY: Final = (
    "mul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n"
    "ld.global.u32 %r2, [%rd4];\nst.global.u32 [%rd5], %r2;\n"
)


@pytest.mark.parametrize("is_tuned", [False, True], ids=["one-by-one", "together"])
@pytest.mark.parametrize("barrier", ["", "bar.sync 0;\n"], ids=["loop", "waits"])
def test_ranges_of_which_a_part_is_wrong(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch, barrier: str, is_tuned: bool
) -> None:
    """All threads are judged at once; if a range is not right, a finding still names the first thread that is wrong."""
    if not is_tuned:
        monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")
    given = checked()
    numbers, fresh, other = given.words(*range(100)), given.client.make("Malloc", 400), given.client.make("Malloc", 400)
    given.work(barrier + COPY, numbers, fresh, block=100)
    given.work(barrier + COPY, fresh, numbers, block=100)
    assert given.rules() == [], "what a range wrote is written"
    assert given.read(fresh, 100) == list(range(100))
    given.work(barrier + COPY, fresh, other, block=60)
    given.work(barrier + COPY, other, numbers, block=100)
    (unwritten,) = given.findings()
    assert (unwritten.rule, unwritten.seen) == (KERNELS_READ_WRITTEN, 40)
    assert "in thread (60, 0, 0)" in unwritten.observed
    given.work(barrier + COPY, fresh, numbers, block=128)
    beyond = given.findings()[1:]
    assert [(each.rule, each.seen) for each in beyond] == [(KERNELS_INSIDE, 28)] * 2
    assert all("in thread (100, 0, 0)" in each.observed for each in beyond)


EACH: Final = (
    "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.u32 %r1, %r3, %r4, %r1;\n"
    "mul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n"
    "ld.global.u32 %r2, [%rd4];\nst.global.u32 [%rd5], %r2;\n"
)


def test_blocks_that_go_on_where_others_ended(checked: MakeDevice) -> None:
    """What was right for the blocks before says nothing of bytes that nobody wrote, or of those beyond the end."""
    given = checked()
    numbers, copy = given.words(*range(1000)), given.client.make("Malloc", 4000)
    given.work(EACH, numbers, copy, block=10, grid=100)
    assert given.rules() == []
    assert given.read(copy, 1000) == list(range(1000))
    fresh = given.client.make("Malloc", 4000)
    given.work(EACH, numbers, fresh, block=10, grid=30)
    given.work(EACH, fresh, copy, block=10, grid=40)
    (unwritten,) = given.findings()
    assert (unwritten.rule, unwritten.seen) == (KERNELS_READ_WRITTEN, 100)
    assert "in thread (0, 0, 0) of block (30, 0, 0)" in unwritten.observed
    given.work(EACH, numbers, copy, block=10, grid=102)
    beyond = given.findings()[1:]
    assert [(each.rule, each.seen) for each in beyond] == [(KERNELS_INSIDE, 20)] * 2
    assert all("of block (100, 0, 0)" in each.observed for each in beyond)


def test_memory_that_was_right_in_the_launch_before(checked: MakeDevice) -> None:
    given = checked()
    numbers, copy = given.words(*range(100)), given.client.make("Malloc", 400)
    given.work(EACH, numbers, copy, block=10, grid=10)
    given.client.ok("Free", numbers)
    given.work(EACH, numbers, copy, block=10, grid=10)
    (freed,) = given.findings()
    assert (freed.rule, freed.seen) == (KERNELS_NOT_FREED, 100)


def test_a_launch_touches_nothing_that_only_the_one_before_did(checked: MakeDevice) -> None:
    given = checked()
    numbers, copy = given.words(*range(1000)), given.client.make("Malloc", 4000)
    given.work(EACH, numbers, copy, block=100, grid=10)
    given.work("ld.global.u32 %r2, [%rd1];\n", numbers)
    log = given.client.machine.touched
    launches = [found.pieces for number in range(1000) if (found := log.of(number)) is not None]
    sets = [{(each.start, each.end) for each in pieces} for pieces in launches]
    assert sets == [{(numbers, numbers + 4000), (copy, copy + 4000)}, {(numbers, numbers + 4)}]
