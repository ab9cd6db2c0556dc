"""Kernels that run rows of threads: what is found, and what races are found by, is that of single threads."""

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
NON_BLOCKING: Final = 1


@pytest.fixture(params=[True, False], ids=["one-by-one", "rows"])
def machine(request: pytest.FixtureRequest, checked: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> MakeDevice:
    if request.param:
        monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")
    return checked


def loop(rounds: int, body: str, address: str = "%r1", size: int = 4) -> str:
    """Return rounds, in ``%r5``, with places of elements in ``%rd3`` and ``%rd4``: the thread's and 32 a round."""
    return (
        f"mov.u32 %r5, 0;\nAGAIN:\nmad.lo.u32 %r6, %r5, 32, {address};\nmul.wide.u32 %rd5, %r6, {size};\n"
        f"add.u64 %rd3, %rd1, %rd5;\nadd.u64 %rd4, %rd2, %rd5;\n{body}NEXT:\nadd.u32 %r5, %r5, 1;\n"
        f"setp.lt.u32 %p1, %r5, {rounds};\n@%p1 bra AGAIN;\n"
    )


COPY: Final = "ld.global.u32 %r7, [%rd3];\nst.global.u32 [%rd4], %r7;\n"


@pytest.mark.parametrize("first", [0, 1])
def test_rows_that_end_beyond_their_block(machine: MakeDevice, first: int) -> None:
    given = machine()
    numbers, copy = given.words(*range(100)), given.client.make("Malloc", 400)
    given.work(loop(3, COPY), numbers + 4 * first, copy + 4 * first, block=32)
    assert given.rules() == []
    assert given.read(copy + 4 * first, 96) == list(range(first, 96 + first))
    given.work(loop(4, COPY), numbers + 4 * first, copy + 4 * first, block=32)
    found = given.findings()
    inside = [each for each in found if each.rule == KERNELS_INSIDE]  # one reads the next block, which nobody wrote
    assert sum(each.seen for each in found) == 2 * (28 + first)
    assert len(inside) == 2
    assert all(f"in thread ({4 - first}, 0, 0)" in each.observed for each in inside)


@pytest.mark.parametrize(("block", "wrong"), [(40, 0), (33, 7), (8, 5)])
def test_one_place_that_all_threads_read(machine: MakeDevice, block: int, wrong: int) -> None:
    """Some threads leave before: the first one that is left is named."""
    given = machine()
    words, copy = given.words(*range(64)), given.client.make("Malloc", 256)
    given.client.ok("Free", words)
    leave = f"setp.lt.u32 %p2, %r1, {wrong};\n@%p2 bra NEXT;\n"
    given.work(loop(2, leave + "ld.global.u32 %r7, [%rd1+8];\n"), words, copy, block=block)
    (found,) = given.findings()
    assert (found.rule, found.seen) == (KERNELS_NOT_FREED, 2 * (block - wrong))
    assert f"in thread ({wrong}, 0, 0)" in found.observed


@pytest.mark.parametrize(("size", "type_"), [(1, "u8"), (2, "u16"), (4, "u32"), (8, "u64")])
def test_a_word_that_nobody_wrote(machine: MakeDevice, size: int, type_: str) -> None:
    given = machine()
    fresh, other = given.client.make("Malloc", 64 * size), given.words(*range(128))
    register = "%rd6" if size == 8 else "%r7"
    store = f"setp.eq.u32 %p2, %r6, 37;\n@%p2 bra NEXT;\nst.global.{type_} [%rd3], {register};\n"
    set_ = f"mov.u64 {register}, 1;\n" if size == 8 else f"mov.u32 {register}, 1;\n"
    given.work(set_ + loop(2, store, size=size), fresh, other, block=32)
    assert given.rules() == []
    given.work(loop(2, f"ld.global.{type_} {register}, [%rd3];\nst.global.u32 [%rd2], %r6;\n", size=size), fresh, other)
    given.work(loop(2, f"ld.global.{type_} {register}, [%rd3];\n", size=size), fresh, other, block=32)
    (found,) = given.findings()
    assert (found.rule, found.seen) == (KERNELS_READ_WRITTEN, 1)
    assert "in thread (5, 0, 0)" in found.observed


def test_places_that_follow_an_index(machine: MakeDevice) -> None:
    given = machine()
    places = given.words(*(3 * number % 70 for number in range(64)))
    values = given.words(*range(64))
    gather = (
        "ld.global.u32 %r7, [%rd4];\nmul.wide.u32 %rd6, %r7, 4;\nadd.u64 %rd6, %rd1, %rd6;\n"
        "ld.global.u32 %r8, [%rd6];\n"
    )
    given.work(loop(2, gather), values, places, block=32)
    (found,) = given.findings()
    wrong = [number for number in range(64) if 3 * number % 70 >= 64]
    assert (found.rule, found.seen) == (KERNELS_INSIDE, len(wrong))


@pytest.mark.parametrize("shift", [0, 1, 5])
def test_bytes_that_two_streams_use(machine: MakeDevice, shift: int) -> None:
    """Races are found by the bytes that a launch used, and no others."""
    given = machine()
    words, other = given.words(*[0] * 400), given.words(*[0] * 400)
    first, second = (given.client.make("StreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    given.client.ok("DeviceSynchronize")
    given.work(loop(2, COPY), other, words + 4 * shift, block=32, stream=first)
    given.work(loop(2, COPY), other, words + 4 * (64 + shift), block=32, stream=second)
    assert given.rules() == []
    given.work(loop(1, COPY), other, words + 4 * (64 + shift) - 4, block=1, stream=second)
    (found,) = given.findings()
    assert f"both use 4 bytes at {words + 4 * (63 + shift):#x}" in found.observed
