"""Kernels with operations of warps, by rows of 32 threads, against the same kernels for one thread at a time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pytest
from tests.kernels import executor
from tests.kernels.executor import Deadlocked, Kernel
from tests.kernels.programs import HEADER
from tests.kernels.test_widening import Program

from quiesce.simulator.kernels import compiler
from quiesce.simulator.kernels.compiler import can_widen, compile_kernel
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.pipeline import translate_kernel
from quiesce.simulator.kernels.translation.program import Variant
from quiesce.simulator.kernels.translation.warp_rows import WARP_ROW

_WORDS: Final = 64
_OWN: Final = 8
_MASKS: Final = (
    ".reg .b32 %m<99>;\n.reg .b32 %g<9>;\n.reg .pred %q<9>;\n.reg .b64 %sd<9>;\n.shared .align 4 .b8 cells[1024];\n"
)
_GROUPS: Final = (
    "mov.u32 %g1, %laneid;\nand.b32 %g2, %g1, 16;\nmov.u32 %g3, 65535;\nshl.b32 %g3, %g3, %g2;\n"
    "and.b32 %g2, %g1, 24;\nmov.u32 %g4, 255;\nshl.b32 %g4, %g4, %g2;\nmov.u32 %g7, %warpid;\n"
    "shl.b32 %g7, %g7, 5;\nadd.u32 %g7, %g7, %g1;\n"
)
"""The mask of the thread's half of the warp in ``%g3``, that of its quarter in ``%g4``, and its number in ``%g7``."""


@pytest.fixture(autouse=True)
def tuned() -> Iterator[None]:
    """Let tests say themselves which form they run."""
    yield
    executor.tuned[0] = executor.wide[0] = False


class Warps(Program):
    """A random kernel whose warps take part in operations, in branches with the lanes that come there."""

    def __init__(self, seed: int) -> None:
        self._mask, self._masks = "-1", 0
        super().__init__(seed)

    def text(self) -> str:
        return super().text().replace("ld.param.u64 %rd1, [in];\n", f"{_MASKS}{_GROUPS}ld.param.u64 %rd1, [in];\n")

    def _statements(self) -> tuple[Callable[[], str], ...]:
        others = (self._shuffle, self._shuffle, self._vote, self._match, self._reduce, self._exchange)
        return (*super()._statements(), *others)

    def _any_mask(self) -> str:
        """Return the mask of the lanes that are here; or one of a part of a warp, or of others too."""
        masks = [self._mask] * 6 + (["%g3", "%g4"] if self._mask == "-1" else [])
        return self._random.choice(masks + (["-1"] if self._random.random() < 0.05 else []))

    def _shuffle(self) -> str:
        mode = self._random.choice(("up", "down", "bfly", "idx"))
        by = self._random.choice((str(self._random.randrange(32)), "%r20", "%g1", self._any()))
        bounds = self._random.choice(("0x1F", "0x81F", "0x181F", "0x1C1F", "7")) if mode != "up" else "0x1000"
        return (
            f"shfl.sync.{mode}.b32 %g5|%q1, {self._any()}, {by}, {bounds}, {self._any_mask()};\n"
            f"selp.u32 {self._any()}, %g5, {self._any()}, %q1;\nxor.b32 {self._any()}, {self._any()}, %g5;\n"
        )

    def _vote(self) -> str:
        mask = self._any_mask()
        ask = f"and.b32 %g5, {self._source()}, 1;\nsetp.ne.u32 %q1, %g5, 0;\n"
        mode = self._random.choice(("ballot", "any", "all", "uni"))
        if mode == "ballot":
            return f"{ask}vote.sync.ballot.b32 {self._any()}, %q1, {mask};\n"
        return f"{ask}vote.sync.{mode}.pred %q2, %q1, {mask};\nselp.u32 {self._any()}, {self._any()}, 3, %q2;\n"

    def _match(self) -> str:
        few = f"and.b32 %g5, {self._source()}, 3;\n"
        if self._random.random() < 0.5:
            return f"{few}match.any.sync.b32 {self._any()}, %g5, {self._any_mask()};\n"
        return (
            f"{few}cvt.u64.u32 %sd1, %g5;\nmatch.all.sync.b64 %g6|%q1, %sd1, {self._any_mask()};\n"
            f"selp.u32 {self._any()}, %g6, {self._any()}, %q1;\n"
        )

    def _reduce(self) -> str:
        name = self._random.choice(
            ("add.u32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32")
        )
        operation, type_ = name.split(".")
        return f"redux.sync.{operation}.{type_} {self._any()}, {self._source()}, {self._any_mask()};\n"

    def _exchange(self) -> str:
        """Exchange words through memory where all lanes are; or only meet."""
        if self._mask != "-1":
            return f"bar.warp.sync {self._any_mask()};\n"
        return (
            "mul.wide.u32 %sd2, %g7, 4;\nmov.u64 %sd3, cells;\nadd.s64 %sd2, %sd3, %sd2;\n"
            f"st.shared.u32 [%sd2], {self._any()};\nbar.warp.sync -1;\n"
            f"xor.b32 %g5, %g7, {self._random.randrange(32)};\n"
            "mul.wide.u32 %sd4, %g5, 4;\nadd.s64 %sd4, %sd3, %sd4;\nld.shared.u32 %g6, [%sd4];\nbar.warp.sync -1;\n"
            f"xor.b32 {self._any()}, {self._any()}, %g6;\n"
        )

    def _branch(self, depth: int) -> None:
        """Branch on a condition, with the masks of the lanes that go either way."""
        before, predicate = self._mask, self._condition()
        self._masks += 2
        there, here = f"%m{self._masks % 98}", f"%m{self._masks % 98 + 1}"
        number = self._name()
        self._lines.append(
            f"vote.sync.ballot.b32 {there}, {predicate}, {before};\n"
            f"vote.sync.ballot.b32 {here}, !{predicate}, {before};\n@{predicate} bra E{number};\n"
        )
        self._mask = here
        self._block(depth - 1)
        self._mask = there
        self._lines.append(f"bra F{number};\nE{number}:\n")
        if self._random.random() < 0.5:
            self._block(depth - 1)
        self._lines.append(f"F{number}:\n")
        self._mask = before

    def _loop(self, depth: int) -> None:
        """Loop as often as a condition says; the lanes that go on are asked for in each round."""
        before = self._mask
        if self._random.random() < 0.5:
            super()._loop(depth)  # whether all lanes do as many rounds is not asked
            return
        self._masks += 2
        self._mask = f"%m{self._masks % 98}"
        number, label = self._name() % 60 + 1, self._name()
        most = self._random.choice(("%r20", "%r1", self._any(), "5"))
        self._lines.append(
            f"mov.u32 {self._mask}, {before};\nmov.u32 %c{number}, 0;\nand.b32 %t3, {most}, 7;\n"
            f"mov.u32 %c{number + 1}, %t3;\nL{label}:\n"
        )
        self._block(depth - 1)
        self._lines.append(
            f"add.u32 %c{number}, %c{number}, 1;\nsetp.lt.u32 %p1, %c{number}, %c{number + 1};\n"
            f"vote.sync.ballot.b32 {self._mask}, %p1, {self._mask};\n@%p1 bra L{label};\n"
        )
        self._mask = before


def _run(text: str, wide: bool, block: tuple[int, ...], seed: int) -> tuple[bytes, bytes] | None:
    """Return what a kernel writes, or None where its threads wait for ever."""
    executor.tuned[0] = executor.wide[0] = wide
    values = np.random.default_rng(seed).integers(0, 2**32, _WORDS, dtype=np.uint32)
    out = np.zeros(2 * int(np.prod(block)) * _OWN, np.uint32)
    counts = np.zeros(16, np.uint32)
    try:
        Kernel(text, "k").launch(2, block, values, out, counts, np.uint32(seed % 40))
    except Deadlocked:
        return None
    return out.tobytes(), counts.tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_random_kernels_do_the_same(seed: int) -> None:
    text = Warps(seed).text()
    block = random.Random(seed).choice(((32, 1), (64, 1), (40, 1), (16, 4), (33, 2), (5, 2)))
    assert _run(text, True, block, seed) == _run(text, False, block, seed)


def test_most_random_kernels_are_rows_and_end() -> None:
    """What the test above compares is worth comparing."""
    made = [compile_kernel(Module(Warps(seed).text()), "k", Variant(tuned=True, wide=True)) for seed in range(8)]
    assert not can_widen() or sum(b"quiesce_kernel_together\0" in each for each in made) > 4
    assert sum(_run(Warps(seed).text(), False, (32, 1), seed) is not None for seed in range(8)) > 4


_HEAD: Final = (
    f"{HEADER}.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<9>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n"
    ".shared .align 4 .b8 cells[128];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.lo.u32 %r2, %r1, %r1;\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd1, %rd2;\n"
)
_END: Final = "st.global.u32 [%rd2], %r3;\nend:\nret;\n}\n"


def _values(body: str, block: int) -> list[int]:
    out = np.zeros(block, np.uint32)
    executor.tuned[0] = executor.wide[0] = True
    Kernel(f"{_HEAD}{body}{_END}", "k").launch(1, block, out)
    return [int(each) for each in out]


def test_lanes_that_meet_from_two_branches() -> None:
    """Lanes come to different instructions with one mask, and take part in one operation: each goes on by itself."""
    shuffle = "shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;\n"
    body = (
        f"and.b32 %r4, %r1, 1;\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra even;\n{shuffle}bra done;\neven:\n{shuffle}done:\n"
    )
    assert _values(body, 64) == [(lane ^ 1) ** 2 for lane in range(64)]


def test_lanes_that_end_before_an_operation() -> None:
    body = "setp.ge.u32 %p1, %r1, 40;\n@%p1 bra end;\nredux.sync.add.u32 %r3, %r2, -1;\n"
    sums = [sum(lane**2 for lane in range(32)), sum(lane**2 for lane in range(32, 40))]
    assert _values(body, 64) == [sums[0]] * 32 + [sums[1]] * 8 + [0] * 24


def test_a_sum_of_a_block_by_warps() -> None:
    """Shuffles, a barrier, and the first warp sums what the others found: the others have nothing more to do."""
    steps = "".join(
        f"shfl.sync.down.b32 %r5, %r4, {step}, 31, -1;\nadd.u32 %r4, %r4, %r5;\n" for step in (16, 8, 4, 2, 1)
    )
    body = (
        f"mov.u32 %r4, %r2;\n{steps}shr.u32 %r6, %r1, 5;\nand.b32 %r7, %r1, 31;\nmul.wide.u32 %rd3, %r6, 4;\n"
        "mov.u64 %rd4, cells;\nadd.s64 %rd3, %rd4, %rd3;\nsetp.ne.u32 %p1, %r7, 0;\n@%p1 bra met;\n"
        "st.shared.u32 [%rd3], %r4;\nmet:\nbar.sync 0;\nmov.u32 %r3, 5;\nsetp.ne.u32 %p2, %r6, 0;\n@%p2 bra done;\n"
        "mov.u32 %r8, %ntid.x;\nshr.u32 %r8, %r8, 5;\nsetp.ge.u32 %p3, %r7, %r8;\nmov.u32 %r4, 0;\n@%p3 bra sum;\n"
        "mul.wide.u32 %rd5, %r7, 4;\nadd.s64 %rd5, %rd4, %rd5;\nld.shared.u32 %r4, [%rd5];\nsum:\n"
        f"{steps}mov.u32 %r3, %r4;\ndone:\n"
    )
    found = _values(body, 256)
    assert found[0] == sum(number**2 for number in range(256))
    assert found[32:] == [5] * 224
    assert not can_widen() or b"quiesce_kernel_together\0" in compile_kernel(
        Module(f"{_HEAD}{body}{_END}"), "k", Variant(tuned=True, wide=True)
    )


def test_lanes_look_at_memory_again_where_a_block_begins() -> None:
    """A branch back that follows another branch: who looks again lets the others go on."""
    body = (
        "mov.u64 %rd4, cells;\nmov.u32 %r9, 1;\nsetp.ne.u32 %p1, %r1, 40;\n@%p1 bra look;\n"
        "st.volatile.shared.u32 [%rd4], %r9;\nlook:\nld.volatile.shared.u32 %r4, [%rd4];\nsetp.eq.u32 %p2, %r4, 1;\n"
        "@%p2 bra seen;\nbra look;\nseen:\nshfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;\n"
    )
    assert _values(body, 64) == [(lane ^ 1) ** 2 for lane in range(64)]


def test_lanes_count_one_by_one_in_a_barrier_in_memory() -> None:
    body = (
        "mov.u32 %r9, cells;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra made;\nmbarrier.init.shared.b64 [%r9], 64;\nmade:\n"
        "bar.sync 0;\nmbarrier.arrive.shared.b64 %rd4, [%r9];\nlook:\n"
        "mbarrier.test_wait.shared.b64 %p2, [%r9], %rd4;\n@!%p2 bra look;\nshfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;\n"
    )
    assert _values(body, 64) == [(lane ^ 1) ** 2 for lane in range(64)]


def test_loops_of_threads_between_barriers_are_done_by_rows() -> None:
    """Each thread adds what all have put into shared memory."""
    body = (
        "mov.u64 %rd4, cells;\nand.b32 %r5, %r1, 31;\nmul.wide.u32 %rd3, %r5, 4;\nadd.s64 %rd3, %rd4, %rd3;\n"
        "st.shared.u32 [%rd3], %r5;\nbar.sync 0;\nmov.u32 %r3, 0;\nmov.u32 %r6, 0;\nagain:\n"
        "ld.shared.u32 %r7, [%rd4];\nmad.lo.u32 %r3, %r7, %r2, %r3;\nadd.s64 %rd4, %rd4, 4;\nadd.u32 %r6, %r6, 1;\n"
        "setp.lt.u32 %p1, %r6, 32;\n@%p1 bra again;\nbar.sync 0;\n"
    )
    assert _values(body, 64) == [lane**2 * sum(range(32)) for lane in range(64)]
    text = translate_kernel(Module(f"{_HEAD}{body}{_END}"), "k", Variant(tuned=True, wide=True))
    assert f"@{WARP_ROW}0(" in text


@pytest.mark.skipif(not can_widen(), reason="reads and writes the text of another version of LLVM")
def test_places_of_a_warp_are_judged_at_once() -> None:
    """Those of 16 lanes by one call, and those of single lanes only where it says no."""
    text = f"{_HEAD}setp.gt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r3, %p1, -1;\n{_END}"
    translated = translate_kernel(Module(text), "k", Variant(tuned=True, wide=True, checks=True))
    begin = f"define internal i32 @{WARP_ROW}0("
    row = compiler._with_rows(translated).partition(begin)[2].partition("\n}")[0]
    assert row.count("call i1 @check0.row(") == 2
    assert "quiesce_kernel_check" not in row
