"""Which launches run their blocks at the same time, why others don't, and that no two blocks meet in those that do."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")

from tests.kernels.footprints import Memory, why_alone
from tests.kernels.judged import CHANGE, LOAD, Judged
from tests.kernels.programs import HEADER

PARAMETERS: Final = ".param .u64 p, .param .u64 q, .param .u32 n, .param .u32 m"
POINTERS: Final = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [m];"
INDEX: Final = POINTERS + (
    "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.s32 %r3, %r3, %r4, %r5;"
)
"""The number of the thread on x in ``%r3``."""
ROWS: Final = INDEX + "mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ntid.y; mov.u32 %r6, %tid.y; mad.lo.s32 %r4, %r4, %r5, %r6;"
"""The same, and its number on y in ``%r4``."""
WORD: Final = "mul.wide.s32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;"
GUARD: Final = "setp.ge.s32 %p1, %r3, %r1; @%p1 bra end;"
STORE: Final = "st.global.u32 [%rd5], %r1;"
END: Final = "\nend:"
PLACE: Final = "mad.lo.s32 %r3, %r4, %r1, %r3;" + WORD
"""The word in a matrix with ``n`` columns."""
GRID_STRIDE: Final = (
    INDEX + GUARD + "mov.u32 %r6, %nctaid.x; mul.lo.s32 %r6, %r6, %r4;\nagain:" + WORD + "ld.global.u32 %r5, [%rd4];"
    "st.global.u32 [%rd5], %r5; add.s32 %r3, %r3, %r6; setp.lt.s32 %p1, %r3, %r1; @%p1 bra again;" + END
)
_HUGE: Final = 0x7FFFFFF0
P, Q = Memory(0), Memory(1)
PARALLEL = ""
MEETS = "two blocks may write the same byte"
READS = "a block may read what another one writes"
CHANGES = "a block may use what another one changes by an atomic operation"
UNKNOWN = "it uses an address that only the kernel knows"
Launch = tuple[Sequence[int], Sequence[int], Sequence[Memory | int]]
Case = tuple[str, Sequence[int], Sequence[int], Sequence[Memory | int], str]

BODIES: Final[dict[str, str]] = {
    "each its own": INDEX + WORD + STORE,
    "guarded": INDEX + GUARD + WORD + STORE + END,
    "guarded by a predicate": INDEX + WORD + "setp.lt.s32 %p1, %r3, %r1; @%p1 " + STORE,
    "in place": INDEX + WORD + "ld.global.u32 %r7, [%rd5]; add.s32 %r1, %r1, %r7;" + STORE,
    "neighbour": INDEX + WORD + "ld.global.u32 %r1, [%rd4+4];" + STORE,
    "pairs": INDEX + "shl.b32 %r3, %r3, 1;" + WORD + STORE + "st.global.u32 [%rd5+4], %r1;",
    "overlapping pairs": INDEX + WORD + STORE + "st.global.u32 [%rd5+4], %r1;",
    "grid stride": GRID_STRIDE,
    "matrix": ROWS + PLACE + STORE,
    "guarded matrix": ROWS
    + "setp.ge.s32 %p1, %r3, %r1; setp.ge.s32 %p2, %r4, %r2; or.pred %p1, %p1, %p2; @%p1 bra end;"
    + PLACE
    + STORE
    + END,
    "one for a block": INDEX + "setp.ne.s32 %p1, %r5, 0; @%p1 bra end; mov.u32 %r3, %ctaid.x;" + WORD + STORE + END,
    "one for all": INDEX + "st.global.u32 [%rd2], %r1;",
    "one for a warp": INDEX
    + "shr.u32 %r5, %r5, 5; mov.u32 %r3, %ctaid.x; mad.lo.s32 %r3, %r3, %r2, %r5;"
    + WORD
    + STORE,
    "column of rows": INDEX
    + "mul.lo.s32 %r3, %r3, %r1;"
    + WORD
    + "mov.u32 %r6, 0;\nagain:"
    + STORE
    + "add.s64 %rd5, %rd5, 4; add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r1; @%p1 bra again;",
    "column until": INDEX
    + "mul.lo.s32 %r3, %r3, %r1;"
    + WORD
    + "mov.u32 %r6, 0;\nagain:"
    + STORE
    + "add.s64 %rd5, %rd5, 4; add.s32 %r6, %r6, 1; setp.ne.s32 %p1, %r6, %r2; @%p1 bra again;",
    "gathers": INDEX
    + WORD
    + "ld.global.u32 %r6, [%rd5]; mul.wide.s32 %rd6, %r6, 4; add.s64 %rd6, %rd1, %rd6;"
    + "ld.global.u32 %r1, [%rd6];"
    + STORE,
    "scatters": INDEX
    + WORD
    + "ld.global.u32 %r6, [%rd4]; mul.wide.s32 %rd6, %r6, 4; add.s64 %rd6, %rd2, %rd6;"
    + "st.global.u32 [%rd6], %r1;",
    "pointer from memory": INDEX + "ld.global.u64 %rd6, [%rd1]; st.global.u32 [%rd6], %r1;",
    "counts": INDEX
    + WORD
    + "ld.global.u32 %r6, [%rd4]; and.b32 %r6, %r6, 255; mul.wide.u32 %rd6, %r6, 4;"
    + "add.s64 %rd6, %rd2, %rd6; red.global.add.u32 [%rd6], 1;",
    "counts and reads": INDEX + "red.global.add.u32 [%rd2], 1; ld.global.u32 %r1, [%rd2+4];" + WORD,
    "two operations": INDEX + "red.global.add.u32 [%rd2], 1; red.global.max.u32 [%rd2], 1;",
    "by modulo": INDEX + "rem.u32 %r3, %r3, %r2;" + WORD + STORE,
    "by a remainder less": INDEX + "rem.u32 %r6, %r5, 7; rem.u32 %r7, %r3, 7; sub.s32 %r6, %r6, %r7;"
    "mul.wide.s32 %rd3, %r6, 4; add.s64 %rd5, %rd2, %rd3;" + STORE,
    "wraps": INDEX + "shl.b32 %r3, %r3, 28; mul.wide.s32 %rd3, %r3, 4; add.s64 %rd5, %rd2, %rd3;" + STORE,
    "backwards": INDEX + "sub.s32 %r3, %r1, %r3;" + WORD + STORE,
    "waits": INDEX + WORD + "ld.global.u32 %r6, [%rd4]; bar.sync 0;" + STORE,
}
CASES: Final[list[Case]] = [
    ("each its own", (8, 1, 1), (32, 1, 1), (P, Q, 256, 0), PARALLEL),
    ("each its own", (8, 2, 1), (32, 1, 1), (P, Q, 256, 0), MEETS),
    ("guarded", (8, 1, 1), (32, 1, 1), (P, Q, 250, 0), PARALLEL),
    ("guarded by a predicate", (8, 1, 1), (32, 1, 1), (P, Q, 250, 0), PARALLEL),
    ("in place", (8, 1, 1), (32, 1, 1), (P, Q, 256, 0), PARALLEL),
    ("neighbour", (8, 1, 1), (32, 1, 1), (P, Q, 256, 0), PARALLEL),
    ("neighbour", (8, 1, 1), (32, 1, 1), (Q, Q, 256, 0), READS),
    ("neighbour", (8, 1, 1), (32, 1, 1), (Memory(1, 1024), Q, 256, 0), PARALLEL),
    ("neighbour", (8, 1, 1), (32, 1, 1), (Memory(1, 1016), Q, 256, 0), READS),
    ("pairs", (8, 1, 1), (32, 1, 1), (P, Q, 256, 0), PARALLEL),
    ("overlapping pairs", (8, 1, 1), (32, 1, 1), (P, Q, 256, 0), MEETS),
    ("grid stride", (8, 1, 1), (32, 1, 1), (P, Q, 5000, 0), PARALLEL),
    ("grid stride", (8, 1, 1), (32, 1, 1), (Memory(1, 20000), Q, 5000, 0), PARALLEL),
    ("grid stride", (8, 1, 1), (32, 1, 1), (Memory(1, 19996), Q, 5000, 0), READS),
    ("grid stride", (8, 1, 1), (32, 1, 1), (P, Q, _HUGE, 0), READS),
    ("matrix", (4, 4, 1), (8, 8, 1), (P, Q, 32, 32), PARALLEL),
    ("matrix", (4, 4, 1), (8, 8, 1), (P, Q, 31, 32), MEETS),
    ("guarded matrix", (4, 4, 1), (8, 8, 1), (P, Q, 31, 30), PARALLEL),
    ("guarded matrix", (4, 4, 1), (8, 8, 1), (P, Q, 33, 30), PARALLEL),
    ("one for a block", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), PARALLEL),
    ("one for all", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), MEETS),
    ("one for a warp", (8, 1, 1), (128, 1, 1), (P, Q, 0, 4), PARALLEL),
    ("one for a warp", (8, 1, 1), (128, 1, 1), (P, Q, 0, 3), MEETS),
    ("column of rows", (8, 1, 1), (4, 1, 1), (P, Q, 10, 0), PARALLEL),
    ("column until", (8, 1, 1), (4, 1, 1), (P, Q, 10, 10), PARALLEL),
    ("column until", (8, 1, 1), (4, 1, 1), (P, Q, 10, 11), MEETS),
    ("gathers", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), PARALLEL),
    ("gathers", (8, 1, 1), (32, 1, 1), (Memory(1, 1024), Q, 0, 0), READS),
    ("scatters", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), MEETS),
    ("pointer from memory", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), UNKNOWN),
    ("counts", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), PARALLEL),
    ("counts", (8, 1, 1), (32, 1, 1), (Q, Q, 0, 0), CHANGES),
    ("counts and reads", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), PARALLEL),
    ("two operations", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), CHANGES),
    ("by modulo", (8, 1, 1), (32, 1, 1), (P, Q, 0, 256), MEETS),
    ("by a remainder less", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), MEETS),
    ("wraps", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), UNKNOWN),
    ("backwards", (8, 1, 1), (32, 1, 1), (P, Q, 1000, 0), PARALLEL),
    ("waits", (8, 1, 1), (32, 1, 1), (P, Q, 0, 0), PARALLEL),
]


@pytest.fixture(autouse=True)
def tuned() -> bool:
    """The table of a kernel does not depend on how it is compiled."""
    return False


def text_of(body: str) -> str:
    registers = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<3>; .reg .pred %p<3>;"
    return f"{HEADER}.visible .entry k({PARAMETERS})\n{{\n{registers}\n{body}\nret;\n}}\n"


@pytest.mark.parametrize("case", CASES, ids=lambda each: f"{each[0]} {each[1:4]}")
def test_a_launch_runs_its_blocks_at_once_or_says_why_not(case: Case) -> None:
    name, grid, block, arguments, why = case
    assert why_alone(text_of(BODIES[name]), "k", grid, block, arguments) == why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("ld.volatile.global.u32 %r1, [%rd1];", "it orders memory between blocks"),
        ("membar.gl;", "it orders memory between blocks"),
        ("membar.cta;", ""),
        ("atom.global.add.u32 %r3, [%rd1], 1;", ""),
        ("atom.global.add.u32 %r3, [%rd1], 1; st.global.u32 [%rd2], %r3;", "it uses what an atomic operation returns"),
        ("red.global.add.f32 [%rd1], 0f3F800000;", "it adds fractions by atomic operations"),
        ("atom.global.exch.b32 %r3, [%rd1], 1;", "it uses what an atomic operation returns"),
        ("trap;", "it prints, allocates memory, may trap"),
        ("mov.u32 %r3, %clock;", "it reads a clock or where it runs"),
        ("again: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again;", "it waits in a loop"),
    ],
)
def test_what_a_kernel_does_keeps_its_blocks_apart(body: str, why: str) -> None:
    found = why_alone(text_of(POINTERS + body), "k", (8, 1, 1), (32, 1, 1), (P, Q, 1, 1))
    assert found.startswith(why) if why else not found


Use = tuple[int, int, int]


class Watched(Judged):
    """A kernel that tells each access: its block, its address, and the word that says what it is."""

    def __init__(self, body: str) -> None:
        self.seen: list[tuple[int, int, int]] = []
        super().__init__(body, PARAMETERS)

    def _ask(self, context: int, address: int, access: int, site: int, thread: int, frame: int | None) -> int:
        sizes = (ctypes.c_uint32 * 9).from_address(context)
        self.seen.append((sizes[6] + sizes[0] * (sizes[7] + sizes[1] * sizes[8]), address, access))
        self.nobodys[:] = 0
        return int(self.nobodys.ctypes.data)

    def uses(self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Memory | int]) -> list[Use]:
        self.seen.clear()
        passed = [np.uint64(each.address) if isinstance(each, Memory) else np.uint32(each) for each in arguments]
        self.kernel.launch(grid, block, *passed)
        return self.seen


def meetings(uses: Sequence[Use]) -> list[tuple[Use, Use]]:
    """Return accesses of two blocks to one byte that are neither both loads nor both changes."""
    last: dict[int, dict[int, Use]] = {}
    found = []
    for use in uses:
        block, address, access = use
        kind = access & 0xF00
        for byte in range(address, address + (access & 0xFF)):
            known = last.setdefault(byte, {})
            for other_kind, other in known.items():
                is_harmless = kind == other_kind and kind in (LOAD, CHANGE)
                if other[0] != block and not is_harmless:
                    found.append((other, use))
            known[kind] = use
    return found


@pytest.mark.parametrize("name", [name for name in BODIES if name not in ("two operations", "wraps")])
def test_no_two_blocks_meet_in_a_launch_that_runs_them_at_once(name: str) -> None:
    """Held to the addresses that the compiled kernel uses, for grids and numbers as they come."""
    watched = Watched(BODIES[name])
    random_ = random.Random(name)
    launches: list[Launch] = [each[1:4] for each in CASES if each[0] == name and each[3][2] != _HUGE]
    for _ in range(25):
        grid: Sequence[int] = (random_.randint(1, 5), random_.randint(1, 3), 1)
        block: Sequence[int] = (random_.choice((1, 3, 4, 8, 33)), random_.choice((1, 1, 2, 4)), 1)
        pointers = (Memory(random_.randint(0, 1), random_.choice((0, 64, 100))), Q)
        launches.append((grid, block, (*pointers, random_.randint(1, 40), random_.randint(1, 40))))
    for grid, block, arguments in launches:
        if not why_alone(text_of(BODIES[name]), "k", grid, block, arguments):
            assert meetings(watched.uses(grid, block, arguments)) == [], (grid, block, arguments)


def test_what_two_blocks_do_with_one_byte_is_noticed() -> None:
    """The comparison itself: a kernel that runs its blocks alone has meetings."""
    watched = Watched(BODIES["one for all"])
    assert meetings(watched.uses((2, 1, 1), (1, 1, 1), (P, Q, 0, 0))) != []
