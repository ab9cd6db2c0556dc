"""What is said of each wrong access of a kernel: the rule, the distance to the block, and the other thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from quiesce.model.findings import Finding
from quiesce.model.rules import Kind
from quiesce.simulator.judge.kernel_accesses import needs_more, wrong_access
from quiesce.simulator.runtime.kernel_logs import LoggedAccess, OtherAccess, Place
from quiesce.simulator.runtime.ledger import OF_KERNELS, Flag, Seen, Thing

from .records import record

HERE: Final = Place("/src/k.cu:7", "", 40, "st.global.u32")
THERE: Final = Place("/src/k.cu:9", "", 44, "ld.global.u32")
OTHER: Final = OtherAccess((1, 0, 0), (2, 0, 0), True, THERE)
LOGGED: Final = LoggedAccess(3, "", "k", (0, 0, 0), (1, 0, 0), HERE, None, 5)
IN_BLOCK: Final[dict[str, Any]] = {"thing": Thing.DEVICE, "other": 0x1000, "other_bytes": 64}


def found(
    seen: Seen, logged: LoggedAccess | None = LOGGED, *, writes: bool = False, variable: str = "", **fields: Any
) -> Finding:
    fields = {"address": 0x1000, "size_bytes": 4, "function": "cudaLaunchKernel", **fields}
    flags = fields.pop("flags", Flag(0)) | (Flag.WRITES if writes else Flag(0))
    made = record(seen, flags=flags, **fields)
    return wrong_access(made, () if logged is None else (logged,), variable)[0]


def said(seen: Seen, *, writes: bool = False, variable: str = "", **fields: Any) -> str:
    """Return what follows the verb and the size of an access."""
    text = found(seen, None, writes=writes, variable=variable, **fields).observed
    verb = "a kernel writes 4 bytes " if writes else "a kernel reads 4 bytes "
    assert text.startswith(verb)
    return text.removeprefix(verb)


@pytest.mark.parametrize(
    ("address", "miss"),
    [
        (0xFFC, "4 bytes before the start of"),
        (0xFF0, "16 bytes before the start of"),
        (0x103E, "of which 2 bytes lie after the end of"),
        (0x1040, "directly after the end of"),
        (0x1050, "16 bytes after the end of"),
    ],
)
def test_how_far_an_access_misses_its_block(address: int, miss: str) -> None:
    at = f"at {address:#x}, {miss} "
    assert said(Seen.KERNEL_OUT_OF_BOUNDS, address=address, **IN_BLOCK) == at + "a device block of 64 bytes"
    heap = said(Seen.KERNEL_OUTSIDE_HEAP, address=address, **IN_BLOCK)
    assert heap == at + "a block of 64 bytes of the device's heap"
    local = said(Seen.KERNEL_OUTSIDE_LOCAL, address=address, **IN_BLOCK)
    assert local == at + "a local array of 64 bytes"


@pytest.mark.parametrize(("address", "into"), [(0x1000, "at the start of"), (0x1008, "8 bytes into")])
def test_how_far_into_a_block_an_access_is(address: int, into: str) -> None:
    at = f"at {address:#x}, {into} "
    assert said(Seen.KERNEL_USED_FREED, address=address, **IN_BLOCK) == at + "a block that was freed before"
    heap = "a block of 64 bytes of the device's heap that was freed before"
    assert said(Seen.KERNEL_FREED_IN_HEAP, address=address, **IN_BLOCK) == at + heap
    for seen in (Seen.KERNEL_RACE_OF_BLOCKS, Seen.KERNEL_MEMORY_RACE_IN_BLOCK, Seen.KERNEL_MEMORY_RACE_IN_WARP):
        assert said(seen, address=address, **IN_BLOCK) == at + "a device block of 64 bytes"


def test_a_variable_is_named_in_place_of_a_block() -> None:
    named = {"variable": "ns::table", **IN_BLOCK}
    outside = said(Seen.KERNEL_OUT_OF_BOUNDS, address=0x1040, **named)
    assert outside == "at 0x1040, directly after the end of variable 'ns::table' of 64 bytes"
    race = said(Seen.KERNEL_RACE_OF_BLOCKS, address=0x1008, **named)
    assert race == "at 0x1008, 8 bytes into variable 'ns::table' of 64 bytes"
    freed = said(Seen.KERNEL_USED_FREED, address=0x1008, **named)
    assert freed == "at 0x1008, 8 bytes into variable 'ns::table' of a module that was unloaded before"
    constant = said(Seen.KERNEL_READ_ONLY, address=0x1000, **named)
    assert constant == "at 0x1000, at the start of variable 'ns::table' of 64 bytes, which may only be read"


@pytest.mark.parametrize(
    ("offset", "size_bytes", "hint"),
    [
        (-(1 << 31) + 8, 1, ""),
        ((1 << 32) + 8, 4, "with 2^32 bytes less it would be at byte 8 of the block"),
        (-(1 << 34) + 8, 4, "with 2^32 times 4 bytes more it would be at byte 8 of the block"),
        ((1 << 35) - 8, 8, "with 2^32 times 8 bytes less it would be 8 bytes before its start"),
        ((12 << 32) + 64, 4, "with 2^32 times 12 bytes less it would be directly after its end"),
        ((1 << 32) + 4096, 4, ""),
        (4096, 4, ""),
    ],
)
def test_an_address_that_is_off_by_what_32_bits_hold(offset: int, size_bytes: int, hint: str) -> None:
    start = 1 << 40
    fields: dict[str, Any] = {"thing": Thing.DEVICE, "other": start, "other_bytes": 64, "size_bytes": size_bytes}
    observed = found(Seen.KERNEL_OUT_OF_BOUNDS, None, address=start + offset, **fields).observed
    assert ("of 32 bits seems to have overflowed" in observed) == bool(hint)
    assert hint in observed


@pytest.mark.parametrize(
    ("symbol", "how"),
    [
        ("_Z4fillPi", "compile with nvcc -lineinfo (NVRTC: --generate-line-info)"),
        ("_ZN8__main__4workB2v1B94cw51cXTLSUwv1kE5Array", "write @cuda.jit(lineinfo=True)"),
        ("_ZN6cudapy8__main__4workE", "write @cuda.jit(lineinfo=True)"),
        ("step_0a1b2c3d_cuda_kernel_forward", "set warp.config.lineinfo = True before the kernels are built"),
    ],
)
def test_how_to_get_lines_where_there_are_none(symbol: str, how: str) -> None:
    logged = replace(LOGGED, symbol=symbol, place=replace(HERE, source=""))
    assert found(Seen.KERNEL_MISALIGNED, logged).evidence == f"its PTX has no lines of the source; to see them, {how}"
    assert found(Seen.KERNEL_MISALIGNED, replace(LOGGED, symbol=symbol)).evidence == ""


@pytest.mark.parametrize(
    ("seen", "fields", "expected"),
    [
        (Seen.KERNEL_OUT_OF_BOUNDS, {}, "at 0x1000, where no memory is allocated"),
        (Seen.KERNEL_MISALIGNED, {"address": 0x1002}, "at 0x1002, which is not a multiple of 4"),
        (Seen.KERNEL_READ_UNWRITTEN, {}, "at 0x1000, which nobody has written"),
        (
            Seen.KERNEL_OUTSIDE_SHARED,
            {"address": 1 << 10, "other_bytes": 1024},
            "at byte 1,024 of shared memory, of which a block has 1,024 bytes (1 KiB)",
        ),
        (
            Seen.KERNEL_OUTSIDE_SHARED,
            {"address": (1 << 64) - 4, "other_bytes": 64},
            "at byte -4 of shared memory, of which a block has 64 bytes",
        ),
        (Seen.KERNEL_RACE_IN_SHARED, {"address": 12}, "at byte 12 of shared memory"),
        (Seen.KERNEL_RACE_IN_WARP, {"address": 12}, "at byte 12 of shared memory"),
        (Seen.KERNEL_USED_UNCOPIED, {"address": 12}, "at byte 12 of shared memory"),
        (
            Seen.KERNEL_OUTSIDE_SURFACE,
            {"address": 64, "other": (1 << 64) - 1, "other_bytes": 64},
            "at byte 64 of row -1 of a surface, whose rows have 64 bytes",
        ),
        (
            Seen.KERNEL_OUTSIDE_SURFACE,
            {"address": (1 << 64) - 8, "other": 2, "other_bytes": 64},
            "at byte -8 of row 2 of a surface, whose rows have 64 bytes",
        ),
        (Seen.KERNEL_OTHERS_LOCAL, {}, "at 0x1000, which is local memory of another thread"),
        (Seen.KERNEL_OTHER_DEVICE, {"device": 1}, "at 0x1000, which device 1 has no access to"),
        (Seen.KERNEL_READ_ONLY, {}, "at 0x1000, which may only be read"),
        (Seen.KERNEL_NO_MEMORY, {}, "at 0x1000, which is no memory of a device"),
        (Seen.KERNEL_NO_MEMORY, {"address": 0, "flags": Flag.OF_NULL}, "at 0x0, a null pointer"),
        (Seen.KERNEL_NO_MEMORY, {"address": 8, "flags": Flag.OF_NULL}, "at 0x8, 8 bytes after a null pointer"),
        (
            Seen.KERNEL_NO_MEMORY,
            {"address": (1 << 64) - 8, "flags": Flag.OF_NULL},
            "at 0xfffffffffffffff8, 8 bytes before a null pointer",
        ),
    ],
)
def test_what_is_wrong_with_an_access(seen: Seen, fields: dict[str, Any], expected: str) -> None:
    assert said(seen, **fields) == expected
    if seen is not Seen.KERNEL_READ_UNWRITTEN:
        assert said(seen, writes=True, **fields) == expected


def test_an_atomic_operation_reads_and_writes_what_nobody_has_written() -> None:
    observed = found(Seen.KERNEL_READ_UNWRITTEN, None, writes=True).observed
    assert observed == "a kernel reads and writes 4 bytes at 0x1000, which nobody has written"


def test_an_access_that_was_logged_has_a_thread_and_a_line_and_is_counted() -> None:
    finding = found(Seen.KERNEL_NO_MEMORY, replace(LOGGED, test="test_it"))
    assert finding.observed.startswith("kernel 'k' reads 4 bytes at 0x1000, which is no memory of a device, in thread ")
    assert finding.observed.endswith(", in thread (1, 0, 0) of block (0, 0, 0), at /src/k.cu:7")
    assert (finding.request, finding.operation_index, finding.seen) == ("k at /src/k.cu:7", 3, 5)
    assert finding.tests == ("test_it",)
    assert found(Seen.KERNEL_NO_MEMORY).tests == ()


def test_one_that_was_not_logged_is_told_by_its_launch() -> None:
    finding = found(Seen.KERNEL_NO_MEMORY, None, number=17)
    assert (finding.request, finding.operation_index, finding.seen) == ("cudaLaunchKernel", 17, 1)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (replace(HERE, source=""), "'st.global.u32' (line 40 of its PTX)"),
        (replace(HERE, caller="/src/main.cu:3"), "/src/k.cu:7, inlined at /src/main.cu:3"),
    ],
)
def test_where_an_instruction_is(place: Place, text: str) -> None:
    finding = found(Seen.KERNEL_NO_MEMORY, replace(LOGGED, place=place))
    assert finding.observed.endswith(f", at {text}")
    assert finding.request == f"k at {text}"


RACES: Final = {
    Seen.KERNEL_RACE_IN_SHARED: "; thread (2, 0, 0) {} there at /src/k.cu:9, and no barrier of the block is in between",
    Seen.KERNEL_MEMORY_RACE_IN_BLOCK: (
        "; thread (2, 0, 0) {} there at /src/k.cu:9, and no barrier of the block is in between"
    ),
    Seen.KERNEL_RACE_IN_WARP: (
        "; thread (2, 0, 0) {} there at /src/k.cu:9. Both threads are in one warp, and no barrier of the warp is in "
        "between"
    ),
    Seen.KERNEL_MEMORY_RACE_IN_WARP: (
        "; thread (2, 0, 0) {} there at /src/k.cu:9. Both threads are in one warp, and no barrier of the warp is in "
        "between"
    ),
    Seen.KERNEL_RACE_OF_BLOCKS: (
        "; thread (2, 0, 0) of block (1, 0, 0) {} there at /src/k.cu:9, and nothing orders the two blocks"
    ),
}


@pytest.mark.parametrize("seen", RACES)
@pytest.mark.parametrize("writes", [True, False])
def test_what_the_other_thread_of_a_race_does(seen: Seen, writes: bool) -> None:
    other = replace(OTHER, writes=writes)
    observed = found(seen, replace(LOGGED, other=other), writes=True, **IN_BLOCK).observed
    assert observed.endswith(", at /src/k.cu:7" + RACES[seen].format("writes" if writes else "reads"))


@pytest.mark.parametrize(
    ("seen", "ending"),
    [
        (Seen.KERNEL_OTHERS_LOCAL, "; it is that of thread (2, 0, 0)"),
        (Seen.KERNEL_BARRIERS_DIFFER, "; thread (2, 0, 0) of the same warp waits at /src/k.cu:9"),
        (Seen.KERNEL_USED_UNCOPIED, "; thread (2, 0, 0) copies there at /src/k.cu:9, and has not waited for the copy"),
    ],
)
def test_what_another_thread_has_to_do_with_it(seen: Seen, ending: str) -> None:
    assert found(seen, replace(LOGGED, other=OTHER), **IN_BLOCK).observed.endswith(f", at /src/k.cu:7{ending}")


BARRIER: Final = "a barrier of the block between the two accesses: __syncthreads()"
IN_WARP: Final = "a barrier of the warp between the two accesses: __syncwarp()"


@pytest.mark.parametrize(
    ("seen", "other", "writes", "expected"),
    [
        (Seen.KERNEL_RACE_IN_SHARED, OTHER, True, BARRIER),
        (Seen.KERNEL_RACE_IN_WARP, OTHER, True, IN_WARP),
        (Seen.KERNEL_MEMORY_RACE_IN_BLOCK, OTHER, True, BARRIER),
        (
            Seen.KERNEL_RACE_IN_SHARED,
            replace(OTHER, place=HERE),
            True,
            f"different bytes for each thread, an atomic operation or, in a loop, {BARRIER}",
        ),
        (
            Seen.KERNEL_RACE_OF_BLOCKS,
            replace(OTHER, place=HERE),
            True,
            "different bytes for each block, or an atomic operation (atomicAdd)",
        ),
        (
            Seen.KERNEL_MEMORY_RACE_IN_WARP,
            replace(OTHER, place=replace(THERE, source=HERE.source)),
            False,
            f"an atomic operation (atomicAdd), or {IN_WARP}",
        ),
        (Seen.KERNEL_RACE_IN_WARP, replace(OTHER, place=HERE), False, IN_WARP),
        (Seen.KERNEL_RACE_IN_WARP, replace(OTHER, place=HERE, writes=False), True, IN_WARP),
        (Seen.KERNEL_OUTSIDE_HEAP, replace(OTHER, place=HERE), True, "an access that stays inside a block"),
    ],
)
def test_what_would_be_right(seen: Seen, other: OtherAccess, writes: bool, expected: str) -> None:
    assert found(seen, replace(LOGGED, other=other), writes=writes, **IN_BLOCK).expected == expected


def test_two_blocks_need_an_order_even_from_one_line() -> None:
    other = replace(OTHER, place=replace(THERE, source=HERE.source))
    expected = found(Seen.KERNEL_RACE_OF_BLOCKS, replace(LOGGED, other=other), writes=True, **IN_BLOCK).expected
    assert expected.startswith("an order of the two blocks: ")


def test_a_race_of_warps_needs_more_than_one_inside_a_warp() -> None:
    wide, narrow = (found(seen, **IN_BLOCK) for seen in (Seen.KERNEL_RACE_IN_SHARED, Seen.KERNEL_RACE_IN_WARP))
    assert needs_more(wide, narrow)
    assert not needs_more(narrow, wide)
    assert not needs_more(wide, wide)
    assert not needs_more(narrow, narrow)


@pytest.mark.parametrize("size_bytes", [1, 4])
def test_what_no_instruction_did_alone(size_bytes: int) -> None:
    fields = {**IN_BLOCK, "address": 0x1008, "size_bytes": size_bytes}
    finding = found(Seen.KERNEL_DEPENDS_ON_ORDER, replace(LOGGED, test="test_it"), **fields)
    are = "1 byte is" if size_bytes == 1 else "4 bytes are"
    assert finding.observed == (
        f"kernel 'k': {are} different if its blocks and threads run in another order; the first one is at 0x1008, "
        "8 bytes into a device block of 64 bytes"
    )
    assert (finding.request, finding.seen, finding.operation_index, finding.tests) == ("k", 5, 3, ("test_it",))
    waits = found(Seen.KERNEL_WAITS_FOR_EVER)
    assert waits.observed == (
        "kernel 'k': its threads wait for each other for ever; thread (1, 0, 0) of block (0, 0, 0) waits at /src/k.cu:7"
    )
    unknown = found(Seen.KERNEL_WAITS_FOR_EVER, None)
    assert unknown.observed == "a kernel: its threads wait for each other for ever"
    assert (unknown.request, unknown.seen) == ("cudaLaunchKernel", 1)


def test_a_handle_and_a_barrier_have_no_bytes() -> None:
    texture = found(Seen.KERNEL_NO_TEXTURE, None)
    assert texture.observed == "a kernel uses 0x1000, which is no texture or surface that exists"
    assert found(Seen.KERNEL_BARRIERS_DIFFER, None).observed == "a kernel waits at a barrier"


def test_each_has_a_rule_and_a_kind() -> None:
    kinds = {seen: found(seen, **IN_BLOCK).kind for seen in OF_KERNELS}
    assert all(kinds.values())
    assert kinds[Seen.KERNEL_WAITS_FOR_EVER] is Kind.DEADLOCK
    assert kinds[Seen.KERNEL_BARRIERS_DIFFER] is Kind.DIVERGENT_BARRIER
    assert {seen for seen, kind in kinds.items() if kind is Kind.USE_AFTER_FREE} == {
        Seen.KERNEL_USED_FREED,
        Seen.KERNEL_FREED_IN_HEAP,
    }
    assert {seen for seen, kind in kinds.items() if kind is Kind.RACE} == {*RACES, Seen.KERNEL_USED_UNCOPIED}
    assert all(found(seen, **IN_BLOCK).rule for seen in OF_KERNELS)
