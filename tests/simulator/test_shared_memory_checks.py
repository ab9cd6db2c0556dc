"""Threads of a block that meet in shared memory and at barriers: what is found, and what looks like it and is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import BARRIERS_END, THREADS_ORDERED
from quiesce.simulator.kernels.server import ONE_BY_ONE_VARIABLE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

LAUNCH_FAILURE = 719
MakeDevice = Callable[..., Checked]


SHARED = ".shared .align 4 .b8 numbers[4096];\n"
OWN = "mov.u32 %r2, numbers;\nmad.lo.u32 %r2, %r1, 4, %r2;\nmov.u32 %r5, %ntid.x;\nsub.u32 %r3, %r5, %r1;\n"
MIRRORED = "sub.u32 %r3, %r3, 1;\nmov.u32 %r4, numbers;\nmad.lo.u32 %r4, %r3, 4, %r4;\n"
WRITE, READ_OTHER, WRITE_OTHER = (
    "st.shared.u32 [%r2], %r1;\n",
    "ld.shared.u32 %r6, [%r4];\n",
    "st.shared.u32 [%r4], %r1;\n",
)
BARRIER, WARP = "bar.sync 0;\n", "bar.warp.sync 0xFFFFFFFF;\n"


@pytest.mark.parametrize(
    ("block", "body", "races"),
    [
        (64, WRITE + READ_OTHER, True),
        (64, WRITE + BARRIER + READ_OTHER, False),
        (64, WRITE + BARRIER + READ_OTHER + WRITE, True),
        (64, WRITE + BARRIER + READ_OTHER + BARRIER + WRITE, False),
        (64, WRITE + WRITE_OTHER, True),
        (64, WRITE + BARRIER + WRITE_OTHER, False),
        (64, "st.shared.u32 [numbers], 1;\n", False),
        (64, "st.shared.u32 [numbers], %r1;\n", True),
        (64, "atom.shared.add.u32 %r6, [numbers], 1;\n", False),
        (32, WRITE + WARP + READ_OTHER, False),
        (32, WRITE + READ_OTHER, True),
        (64, WRITE + WARP + READ_OTHER, True),
        (64, WRITE + "bar.red.popc.u32 %r7, 0, %p1;\n" + READ_OTHER, False),
    ],
)
def test_threads_that_use_the_same_shared_memory(checked: MakeDevice, block: int, body: str, races: bool) -> None:
    given = checked()
    given.work(OWN + MIRRORED + "setp.eq.u32 %p1, %r1, 0;\n" + body, block=block, grid=2, before=SHARED)
    assert set(given.rules()) == ({THREADS_ORDERED} if races else set())


@pytest.mark.parametrize("grid", [2, 3])
def test_the_last_write_of_a_block_is_told_with_its_block(checked: MakeDevice, grid: int) -> None:
    given = checked()
    lone = "mov.u32 %r7, %ctaid.x;\nsetp.eq.u32 %p1, %r7, 1;\nsetp.lt.and.u32 %p1, %r1, 2, %p1;\n"
    write = "add.u32 %r6, %r1, 5;\n@%p1 st.shared.u32 [numbers+4092], %r6;\n"
    given.work(OWN + lone + WRITE + write, block=64, grid=grid, before=SHARED)
    (finding,) = given.findings()
    assert "writes 4 bytes at byte 4,092 of shared memory, in thread (1, 0, 0) of block (1, 0, 0)" in finding.observed


def test_a_race_names_both_threads(checked: MakeDevice) -> None:
    given = checked()
    given.work(OWN + MIRRORED + WRITE + BARRIER + READ_OTHER + WRITE, block=64, before=SHARED)
    finding = next(each for each in given.findings() if each.rule == THREADS_ORDERED)
    assert finding.expected == "a barrier of the block between the two accesses: __syncthreads()"
    assert "reads 4 bytes at byte 124 of shared memory, in thread (32, 0, 0) of block (0, 0, 0), at" in finding.observed
    assert "; thread (31, 0, 0) writes there at 'st.shared.u32 [%r2], %r1' (line " in finding.observed


OF_BLOCK = "a barrier of the block between the two accesses: __syncthreads()"
OF_WARP = "a barrier of the warp between the two accesses: __syncwarp()"
READ_NEXT = "ld.shared.u32 %r6, [%r2+4];\n"
"""Thread 0 meets thread 1 first; of two warps, thread 31 meets thread 32 as well."""


@pytest.mark.parametrize(
    ("block", "body", "expected"),
    [
        pytest.param(32, WRITE + READ_NEXT, [OF_WARP], id="one-warp"),
        pytest.param(64, WRITE + READ_NEXT, [OF_BLOCK], id="also-between-warps"),
        pytest.param(64, WRITE + WARP + READ_NEXT, [OF_BLOCK], id="barrier-of-the-warp-alone"),
        pytest.param(64, WRITE + BARRIER + READ_NEXT, [], id="barrier-of-the-block"),
        pytest.param(
            32,
            "st.shared.u32 [numbers], %r1;\n",
            [f"different bytes for each thread, an atomic operation or, in a loop, {OF_WARP}"],
            id="one-instruction-in-a-warp",
        ),
        pytest.param(
            64,
            "st.shared.u32 [numbers], %r1;\n",
            [f"different bytes for each thread, an atomic operation or, in a loop, {OF_BLOCK}"],
            id="one-instruction",
        ),
    ],
)
def test_a_race_says_what_mends_all_of_it(checked: MakeDevice, block: int, body: str, expected: list[str]) -> None:
    given = checked()
    given.work(OWN + body, block=block, before=SHARED)
    assert [each.expected for each in given.findings()] == expected


def test_threads_that_wait_for_each_other_for_ever(checked: MakeDevice) -> None:
    given = checked()
    body = "setp.lt.u32 %p1, %r1, 8;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 1;\n"
    given.work(body, block=32, answer=LAUNCH_FAILURE)
    (finding,) = given.findings()
    assert finding.rule == BARRIERS_END
    assert finding.observed.startswith("kernel 'work': its threads wait for each other for ever; thread (0, 0, 0) of ")


TILE: Final = (
    "mov.u32 %r2, %tid.y;\nmov.u32 %r3, numbers;\nmul.lo.u32 %r4, %r2, PITCH;\nadd.u32 %r4, %r4, %r1;\n"
    "mad.lo.u32 %r4, %r4, 4, %r3;\nmul.lo.u32 %r5, %r1, PITCH;\nadd.u32 %r5, %r5, %r2;\n"
    "mad.lo.u32 %r5, %r5, 4, %r3;\nmad.lo.u32 %r6, %r2, 16, %r1;\nsetp.lt.u32 %p1, %r1, 2;\n"
)
"""The address of a thread's own cell in a tile with rows of PITCH numbers, and that of the cell on the other side."""
OWN_CELL, OTHER_SIDE = "st.shared.u32 [%r4], %r6;\n", "ld.shared.u32 %r7, [%r5];\n"
EDGE: Final = "@!%p1 bra inside;\nst.shared.u32 [%r4+64], %r6;\ninside:\n"


@pytest.mark.parametrize("is_tuned", [False, True], ids=["one-by-one", "together"])
@pytest.mark.parametrize(
    ("pitch", "body", "races"),
    [
        (16, OWN_CELL + BARRIER + OTHER_SIDE, False),
        (17, OWN_CELL + BARRIER + OTHER_SIDE, False),
        (17, OWN_CELL + OTHER_SIDE, True),
        (15, OWN_CELL, True),
        (17, OWN_CELL + "ld.shared.u32 %r7, [%r4];\n", False),
        (18, OWN_CELL + EDGE, False),
        (17, OWN_CELL + EDGE, True),
        (17, OWN_CELL + "atom.shared.add.u32 %r7, [numbers+2048], 1;\n", False),
        (17, OWN_CELL + BARRIER + "atom.shared.add.u32 %r7, [numbers], 1;\n", False),
        (17, OWN_CELL + "atom.shared.add.u32 %r7, [numbers], 1;\n", True),
        (17, "atom.shared.add.u32 %r7, [numbers], 1;\n" + OWN_CELL, True),
    ],
)
def test_tiles(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch, pitch: int, body: str, races: bool, is_tuned: bool
) -> None:
    if not is_tuned:
        monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")
    given = checked()
    text = (TILE + "bar.sync 1;\n" + body).replace("PITCH", str(pitch))
    given.work(text, block=(16, 16), grid=2, before=SHARED)
    assert set(given.rules()) == ({THREADS_ORDERED} if races else set())


@dataclass(frozen=True, slots=True)
class Use:
    """What threads of a block do in one instruction: those before a bound on each axis use a cell each."""

    first: int
    steps: tuple[int, int]
    counts: tuple[int, int]
    bytes: int
    writes: bool

    def threads_by_byte(self) -> dict[int, set[tuple[int, int]]]:
        """Return which threads use each byte."""
        found: dict[int, set[tuple[int, int]]] = {}
        for x in range(self.counts[0]):
            for y in range(self.counts[1]):
                start = self.first + x * self.steps[0] + y * self.steps[1]
                for byte in range(start, start + self.bytes):
                    found.setdefault(byte, set()).add((x, y))
        return found

    def text(self, number: int) -> str:
        """Return it as PTX, with registers of its own."""
        a, b, c = (f"%r{3 + 3 * number + each}" for each in range(3))
        word = {4: "u32", 8: "u64", 16: "v2.u64"}[self.bytes]
        read, written = ("{%rd7, %rd8}", "{%rd9, %rd9}") if self.bytes == 16 else ("%rd8", "%rd9")
        access = f"st.shared.{word} [{a}], {written}" if self.writes else f"ld.shared.{word} {read}, [{a}]"
        return (
            f"mul.lo.s32 {a}, %r1, {self.steps[0]};\nmul.lo.s32 {b}, %r2, {self.steps[1]};\nadd.s32 {a}, {a}, {b};\n"
            f"mov.u32 {c}, numbers;\nadd.s32 {c}, {c}, {self.first};\nadd.s32 {a}, {a}, {c};\n"
            f"setp.ge.s32 %p1, %r1, {self.counts[0]};\n@%p1 bra over{number};\n"
            f"setp.ge.s32 %p2, %r2, {self.counts[1]};\n@%p2 bra over{number};\n{access};\nover{number}:\n"
        )


def any_use(generator: random.Random) -> Use:
    """Return a use in the middle of the shared memory."""
    bytes_ = generator.choice((4, 4, 4, 8, 16))
    steps = [bytes_ * generator.choice((0, 1, 1, 1, 2, 3, 4, 5, 8, -1, -4)) for _ in range(2)]
    counts = [generator.choice((1, 2, 3, 4)) for _ in range(2)]
    first = 2048 + max(8, bytes_) * generator.randrange(-8, 8)
    return Use(first, (steps[0], steps[1]), (counts[0], counts[1]), bytes_, generator.random() < 0.5)


def race(uses: list[Use]) -> bool:
    """Say whether two threads use a byte, one of which writes it."""
    found = [(each.writes, each.threads_by_byte()) for each in uses]
    for writes, one in found:
        for also_writes, other in found:
            for byte in one.keys() & other.keys() if writes or also_writes else ():
                if len(one[byte] | other[byte]) > 1:
                    return True
    return False


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("width", [4, 16], ids=["one-warp", "two-warps"])
@pytest.mark.parametrize("is_tuned", [False, True], ids=["one-by-one", "together"])
def test_any_uses_are_found_to_race_if_they_do(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch, is_tuned: bool, width: int, seed: int
) -> None:
    """Accesses race if those of two threads meet, and only then: each is judged by itself, or all as ranges."""
    if not is_tuned:
        monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")
    generator, given, seen = random.Random(seed), checked(), 0
    own = "mov.u32 %r2, %tid.y;\nmad.lo.u32 %r12, %r2, 16, %r1;\ncvt.u64.u32 %rd9, %r12;\nbar.sync 1;\n"
    for _ in range(12):
        uses = [any_use(generator) for _ in range(generator.choice((1, 2, 2)))]
        given.work(own + "".join(each.text(n) for n, each in enumerate(uses)), block=(width, 4), before=SHARED)
        before, seen = seen, sum(each.seen for each in given.findings())
        assert (seen > before) == race(uses), uses
