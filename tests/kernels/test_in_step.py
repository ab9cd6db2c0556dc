"""Which kernels take the threads of a warp to be in step, and before which accesses their threads wait."""

from __future__ import annotations

import itertools

import pytest
from tests.kernels.programs import HEADER

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.program import Program
from quiesce.simulator.kernels.translation.spin_loops import STEP
from quiesce.simulator.kernels.translation.warp_synchronous import with_steps

REGISTERS = ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<4>;\n"
LANE = "and.b32 %r1, %r0, 31;\n"


@pytest.fixture(autouse=True)
def tuned() -> bool:
    """Nothing here is compiled."""
    return False


def waits(body: str) -> list[str]:
    """Return the instructions before which threads wait for their warp."""
    before = ".shared .align 4 .b8 cells[256];\n.global .u32 counter;\n"
    setup = "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r8, cells;\n"
    parameters = ".param .u64 a, .param .u64 b"
    text = f"{HEADER}{before}.visible .entry k({parameters})\n{{\n{REGISTERS}{setup}{body}\nret;\n}}\n"
    items = with_steps(Program(Module(text)).parse("k")).items
    return [
        following.text.rstrip(";") if isinstance(following, Instruction) else following.name
        for step, following in itertools.pairwise(items)
        if isinstance(step, Instruction) and step.opcode == STEP
    ]


STORE, LOAD = "st.global.u32 [%rd1], %r0", "ld.global.u32 %r2, [%rd1+4]"
EXCHANGE = f"{STORE};\n{LOAD};"


@pytest.mark.parametrize(
    ("line", "knows"),
    [
        ("and.b32 %r1, %r0, 31;", True),
        ("and.b32 %r1, %r0, -32;", True),
        ("and.b32 %r1, %r0, 0xFFFFFFE0;", True),
        ("and.b64 %rd3, %rd4, 0xFFFFFFFFFFFFFFE0;", True),
        ("shr.u32 %r1, %r0, 27;", True),
        ("shr.u64 %rd3, %rd4, 59;", True),
        ("mov.u32 %r1, %laneid;", True),
        ("and.b32 %r1, %r0, 32;", False),
        ("and.b32 %r1, %r0, 30;", False),
        ("shr.u32 %r1, %r0, 28;", False),
        ("shr.u32 %r1, %r0, 31;", False),
        ("or.b32 %r1, %r0, 31;", False),
        ("mov.u32 %r1, %warpid;", False),
    ],
)
def test_a_kernel_that_computes_a_lane_knows_of_warps(line: str, knows: bool) -> None:
    assert waits(f"{line}\n{EXCHANGE}") == [LOAD] * knows


def test_one_with_volatile_accesses_does_too_but_waits_before_those_only() -> None:
    volatile = LOAD.replace("ld", "ld.volatile")
    assert waits(f"st.volatile.global.u32 [%rd1], %r0;\n{volatile};\n{LOAD};") == [volatile]
    assert waits(EXCHANGE) == []


@pytest.mark.parametrize("line", ["bar.warp.sync -1;", "barrier.warp.sync -1;"])
def test_one_with_a_barrier_of_a_warp_knows_that_they_need_not_be_in_step(line: str) -> None:
    assert waits(f"{LANE}{EXCHANGE}\n{line}") == []
    assert waits(f"{LANE}{EXCHANGE}\nbar.sync 0;") == [LOAD]


@pytest.mark.parametrize(
    ("look", "spins"),
    [
        ("ld.volatile.global.u32 %r3, [%rd2];", True),
        ("ld.acquire.gpu.global.u32 %r3, [%rd2];", True),
        ("ld.global.u32 %r3, [%rd2];", False),
        ("atom.global.cas.b32 %r3, [%rd2], 1, 2;", True),
        ("atom.global.exch.b32 %r3, [%rd2], 1;", True),
        ("atom.global.add.u32 %r3, [%rd2], 0;", True),
        ("atom.global.or.b32 %r3, [%rd2], 0;", True),
        ("atom.global.add.u32 %r3, [%rd2], 1;", False),
        ("atom.global.and.b32 %r3, [%rd2], 0;", False),
    ],
)
def test_one_that_waits_for_a_value_in_a_loop_is_none(look: str, spins: bool) -> None:
    loop = f"again: {look}\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra again;\n"
    found = waits(f"{LANE}{EXCHANGE}\n{loop}")
    assert bool(found) != spins
    assert (LOAD in found) != spins


@pytest.mark.parametrize(
    ("first", "second", "depends"),
    [
        (STORE, LOAD, True),
        (LOAD, STORE, True),
        (STORE, STORE.replace("%r0", "%r1"), True),
        (LOAD, LOAD.replace("%r2", "%r3"), False),
        (STORE, "ld.global.u32 %r2, [%rd2+12]", False),
        (STORE, "ld.shared.u32 %r2, [%r8]", False),
        ("st.shared.u32 [%r8], %r0", "ld.shared.u32 %r2, [cells+8]", True),
        ("st.global.u32 [counter], %r0", "ld.global.u32 %r2, [counter]", True),
        ("atom.global.add.u32 %r2, [%rd1], 1", LOAD, True),
        ("red.global.add.u32 [%rd1], 1", LOAD, True),
        (LOAD, "atom.global.add.u32 %r2, [%rd1], 1", True),
        ("st.local.u32 [%rd1], %r0", LOAD, False),
        (STORE, "ld.const.u32 %r2, [%rd1]", False),
        (STORE, "ld.global.nc.u32 %r2, [%rd1]", False),
        (f"{STORE};\nbar.sync 0", LOAD, False),
        (f"{STORE};\nshfl.sync.idx.b32 %r4, %r0, 0, 31, -1", LOAD, False),
    ],
)
def test_threads_wait_before_what_may_depend_on_another_thread(first: str, second: str, depends: bool) -> None:
    found = waits(f"{LANE}{LOAD.replace('%rd1', '%rd2')};\n{first};\n{second};\n{EXCHANGE.replace('%rd1', '%rd2')}")
    assert (second in found) == depends


@pytest.mark.parametrize(
    ("made", "depends"),
    [
        ("mov.u64 %rd3, %rd1", True),
        ("cvta.to.global.u64 %rd3, %rd1", True),
        ("add.u64 %rd3, %rd1, 8", True),
        ("mul.wide.u32 %rd4, %r0, 4;\nadd.u64 %rd3, %rd1, %rd4", True),
        ("mad.wide.u32 %rd3, %r0, 4, %rd1", True),
        ("mul.wide.u32 %rd4, %r0, 4;\nadd.u64 %rd3, %rd2, %rd4", False),
        ("ld.global.u64 %rd3, [%rd1]", False),
    ],
)
def test_where_an_address_begins(made: str, depends: bool) -> None:
    load = "ld.global.u32 %r2, [%rd3]"
    assert (load in waits(f"{LANE}{made};\n{STORE};\n{load};\n{LOAD};")) == depends


def test_an_address_in_shared_memory_begins_at_each_of_its_parts() -> None:
    load = "ld.shared.u32 %r2, [%r5]"
    made = "shl.b32 %r4, %r0, 2;\nadd.u32 %r5, %r4, %r8;\n"
    assert waits(f"{LANE}{made}st.shared.u32 [%r8], %r0;\n{load};") == [load]


def test_they_wait_at_the_end_of_each_round_of_a_loop_as_well() -> None:
    loop = f"mov.u32 %r6, 0;\nagain: {LOAD};\n{STORE};\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, 3;\n"
    found = waits(f"{LANE}{loop}@%p1 bra again;\n@%p1 bra over;\nover:")
    assert found == [LOAD, STORE, "@%p1 bra again"], "the load of a later round follows the store of this one"


def test_what_was_done_before_a_branch_counts_after_it() -> None:
    branch = f"setp.eq.u32 %p1, %r0, 0;\n@%p1 bra over;\n{STORE};\nover: {LOAD};"
    assert waits(f"{LANE}{branch}") == [LOAD]
