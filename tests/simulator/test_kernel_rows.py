"""Kernels that run rows of threads: what is found, and what races are found by, is that of single threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import (
    BLOCKS_ORDERED,
    KERNELS_ALIGNED,
    KERNELS_INSIDE,
    KERNELS_NOT_FREED,
    KERNELS_READ_WRITTEN,
)
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


PICKED: Final = (
    "mad.wide.u32 %rd3, %r1, 4, %rd2;\nld.global.u32 %r2, [%rd3];\nmad.wide.u32 %rd3, %r2, {size}, %rd1;\n{access}\n"
)


@pytest.mark.parametrize(("size", "type_"), [(1, "u8"), (2, "u16"), (4, "u32"), (8, "u64"), (16, "v2.u64")])
@pytest.mark.parametrize("access", ["ld", "st"])
def test_places_that_are_picked_without_a_loop(machine: MakeDevice, size: int, type_: str, access: str) -> None:
    """The lanes that are wrong are found, and no others: outside, misaligned, and of a null pointer."""
    given = machine()
    values = given.words(*range(50 * size // 4))
    register = {8: "%rd4", 16: "{%rd4, %rd5}"}.get(size, "%r3")
    value = f"{access}.global.{type_} " + (f"{register}, [%rd3];" if access == "ld" else f"[%rd3], {register};")
    set_ = "mov.u64 %rd4, 1;\nmov.u64 %rd5, 1;\nmov.u32 %r3, 1;\n"
    body = set_ + PICKED.format(size=size, access=value)
    count = 50 * size // 4 * 4 // size
    given.work(body, values, given.words(*(7 * number % count for number in range(40))), block=40)
    assert given.rules() == []
    given.work(body, values, given.words(*(count if number in (3, 21, 39) else 5 for number in range(40))), block=40)
    (found,) = given.findings()
    assert (found.rule, found.seen) == (KERNELS_INSIDE, 3)
    assert "in thread (3, 0, 0)" in found.observed
    if size > 1:
        given.work(body, values + 1, given.words(*range(20)), block=17)
        assert [(each.rule, each.seen) for each in given.findings()[1:]] == [(KERNELS_ALIGNED, 17)]


def test_bytes_that_were_picked(machine: MakeDevice) -> None:
    """Races are found by the bytes that the lanes used, also where several lanes used bytes of one word of bits."""
    given = machine()
    words, picked = given.words(*[0] * 400), given.words(*(5 * number for number in range(64)))
    ones = given.words(1)
    first, second = (given.client.make("StreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    given.client.ok("DeviceSynchronize")
    given.work(PICKED.format(size=4, access="ld.global.u32 %r3, [%rd3];"), words, picked, block=64, stream=first)
    store = PICKED.format(size=4, access="st.global.u32 [%rd3], %r2;")
    for number in (1, 9, 316, 314):
        given.work(store, words + 4 * number - 4, ones, block=1, stream=second)
    assert given.rules() == []
    given.work(store, words + 4 * 314, ones, block=1, stream=second)
    (found,) = given.findings()
    assert f"both use 4 bytes at {words + 4 * 315:#x}" in found.observed


SCATTER: Final = (
    "mov.u32 %r5, %ctaid.x;\nmad.lo.u32 %r6, %r5, 16, %r1;\nmad.wide.u32 %rd3, %r6, 4, %rd2;\n"
    "ld.global.u32 %r2, [%rd3];\nmad.wide.u32 %rd3, %r2, 4, %rd1;\nadd.u32 %r6, %r6, 1;\n"
)
"""Where a thread of one of several blocks of 16 picks a word, and the number of the thread, from 1 on."""


@pytest.mark.parametrize("loop", ["", "mov.u32 %r3, 0;\nAGAIN:\n"], ids=["straight", "loop"])
def test_blocks_that_pick_the_same_words(machine: MakeDevice, loop: str) -> None:
    """Each write of a lane changes its word before the next access is looked at, or it would be no race."""
    given = machine(races=2)
    words, picked = given.words(*[0] * 64), given.words(*range(15), 40, *range(15), 41)
    again = "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 2;\n@%p1 bra AGAIN;\n" if loop else ""
    given.work(f"{SCATTER}{loop}st.global.u32 [%rd3], %r6;\n{again}", words, picked, block=16, grid=2)
    (found,) = given.findings()
    assert (found.rule, found.seen) == (BLOCKS_ORDERED, 15)
    assert "thread (0, 0, 0) of block (1, 0, 0)" in found.observed


PART: Final = (
    "mov.u32 %r2, %tid.y;\nmov.u32 %r3, %ctaid.x;\nand.b32 %r4, %r3, 1;\nshr.u32 %r5, %r3, 1;\n"
    "mad.lo.u32 %r6, %r4, 16, %r1;\nmad.lo.u32 %r7, %r5, 4, %r2;\n{turn}mad.lo.u32 %r8, %r7, 64, %r6;\n"
    "mad.wide.u32 %rd3, %r8, 4, %rd1;\nst.global.u32 [%rd3], 1;\n"
)
"""Eight blocks of 16 by 4 threads write the left half of 16 rows of 64 words."""


@pytest.mark.parametrize("turn", ["", "sub.u32 %r7, 15, %r7;\n"], ids=["down", "up"])
@pytest.mark.parametrize("inside", [(0, 0), (8, 31), (15, 16)])
def test_a_part_of_a_matrix(machine: MakeDevice, turn: str, inside: tuple[int, int]) -> None:
    """Races are found by the words that blocks wrote of rows, and not by those between them."""
    given = machine()
    words, one = given.words(*[0] * 64 * 17), given.words(1)
    first, second = (given.client.make("StreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    given.client.ok("DeviceSynchronize")
    given.work(PART.format(turn=turn), words, one, block=(16, 4), grid=8, stream=first)
    for row, column in ((0, 32), (3, 63), (7, 40), (15, 32), (16, 0)):
        given.work("st.global.u32 [%rd1], 2;", words + 4 * (64 * row + column), block=1, stream=second)
    assert given.rules() == []
    place = words + 4 * (64 * inside[0] + inside[1])
    given.work("st.global.u32 [%rd1], 2;", place, block=1, stream=second)
    (found,) = given.findings()
    assert f"at {place:#x}" in found.observed


SHUFFLE: Final = "shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1;\nmul.wide.u32 %rd5, %r7, 4;\nadd.u64 %rd3, %rd1, %rd5;\n"
"""The place of the neighbour's word in ``%rd3``."""


def test_places_that_shuffles_tell(machine: MakeDevice) -> None:
    given = machine()
    given.work(f"{SHUFFLE}st.global.u32 [%rd3], %r1;\n", given.words(*range(40)), block=64)
    (found,) = given.findings()
    assert (found.rule, found.seen) == (KERNELS_INSIDE, 24)
    assert "in thread (40, 0, 0)" in found.observed


def test_places_that_lanes_of_a_branch_use(machine: MakeDevice) -> None:
    """Lanes of a warp come to a shuffle from two branches: each goes on by itself, and is judged."""
    given = machine()
    branches = f"setp.lt.u32 %p2, %r1, 2;\n@%p2 bra FEW;\n{SHUFFLE}bra DONE;\nFEW:\n{SHUFFLE}DONE:\n"
    given.work(f"{branches}st.global.u32 [%rd3+8], %r1;\n", given.words(*range(32)), block=32)
    (found,) = given.findings()
    assert (found.rule, found.seen) == (KERNELS_INSIDE, 2)
    assert "in thread (30, 0, 0)" in found.observed


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
