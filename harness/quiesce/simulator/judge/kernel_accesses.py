"""What a kernel did to memory that it may not do, as findings.

For each observation a table has the rule that it breaks, its kind, and what would be right.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quiesce.model.findings import Finding
from quiesce.model.program_rules import (
    BARRIERS_END,
    BARRIERS_SAME,
    BLOCKS_ORDERED,
    COPIES_AWAITED,
    FREED_ONCE,
    KERNELS_ALIGNED,
    KERNELS_ANY_ORDER,
    KERNELS_INSIDE,
    KERNELS_INSIDE_LOCAL,
    KERNELS_INSIDE_SHARED,
    KERNELS_INSIDE_STACK,
    KERNELS_INSIDE_SURFACES,
    KERNELS_KEEP_READ_ONLY,
    KERNELS_NOT_FREED,
    KERNELS_OWN_DEVICE,
    KERNELS_READ_WRITTEN,
    KERNELS_TEXTURES,
    LANES_TAKE_PART,
    OWN_FREED,
    THREADS_ORDERED,
    WAITS_END,
)
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words, shown_path
from quiesce.simulator.judge.drafts import Barrier, Draft
from quiesce.simulator.judge.quoting import how_to_get_lines, quotations
from quiesce.simulator.judge.wording import thing_in_words
from quiesce.simulator.runtime import OPERAND, Flag, LoggedAccess, Place, ProgramSources, Record, Seen, Thing


@dataclass(frozen=True, slots=True)
class KernelRule:
    """What a kernel has to do, and what it is when it does not."""

    name: str
    kind: Kind
    expected: str
    barrier: Barrier = Barrier.NONE


_BARRIER_OF_BLOCK: Final = "a barrier of the block between the two accesses: __syncthreads()"
_BARRIER_OF_WARP: Final = "a barrier of the warp between the two accesses: __syncwarp()"
_ORDER_OF_BLOCKS: Final = (
    "an order of the two blocks: an atomic operation (atomicAdd) for both accesses; or __threadfence() after the first "
    "one and a flag, which the other block looks at before the second; or a second launch"
)
KERNEL_RULES: Final[Mapping[Seen, KernelRule]] = {
    Seen.KERNEL_OUT_OF_BOUNDS: KernelRule(KERNELS_INSIDE, Kind.OUT_OF_BOUNDS, "an access that stays inside a block"),
    Seen.KERNEL_USED_FREED: KernelRule(KERNELS_NOT_FREED, Kind.USE_AFTER_FREE, "live memory"),
    Seen.KERNEL_MISALIGNED: KernelRule(
        KERNELS_ALIGNED, Kind.MISALIGNED, "an address that is a multiple of the size of the access"
    ),
    Seen.KERNEL_READ_UNWRITTEN: KernelRule(KERNELS_READ_WRITTEN, Kind.UNWRITTEN, "memory that was written before"),
    Seen.KERNEL_SHARED_UNWRITTEN: KernelRule(
        KERNELS_READ_WRITTEN, Kind.UNWRITTEN, "shared memory that a thread of the block wrote before"
    ),
    Seen.KERNEL_OUTSIDE_SHARED: KernelRule(
        KERNELS_INSIDE_SHARED, Kind.OUT_OF_BOUNDS, "an access that stays inside the shared memory of the block"
    ),
    Seen.KERNEL_OUTSIDE_ARRAY: KernelRule(
        KERNELS_INSIDE_SHARED, Kind.OUT_OF_BOUNDS, "an access that stays inside its array of shared memory"
    ),
    Seen.KERNEL_OUTSIDE_LOCAL: KernelRule(
        KERNELS_INSIDE_LOCAL, Kind.OUT_OF_BOUNDS, "an access that stays inside the local memory of the thread"
    ),
    Seen.KERNEL_NO_MEMORY: KernelRule(KERNELS_OWN_DEVICE, Kind.WRONG_MEMORY, "memory that the device can use"),
    Seen.KERNEL_OTHER_DEVICE: KernelRule(KERNELS_OWN_DEVICE, Kind.WRONG_MEMORY, "memory that the device can use"),
    Seen.KERNEL_RACE_IN_SHARED: KernelRule(THREADS_ORDERED, Kind.RACE, _BARRIER_OF_BLOCK, Barrier.BLOCK),
    Seen.KERNEL_RACE_IN_WARP: KernelRule(THREADS_ORDERED, Kind.RACE, _BARRIER_OF_WARP, Barrier.WARP),
    Seen.KERNEL_RACE_OF_BLOCKS: KernelRule(BLOCKS_ORDERED, Kind.RACE, _ORDER_OF_BLOCKS),
    Seen.KERNEL_MEMORY_RACE_IN_BLOCK: KernelRule(THREADS_ORDERED, Kind.RACE, _BARRIER_OF_BLOCK, Barrier.BLOCK),
    Seen.KERNEL_MEMORY_RACE_IN_WARP: KernelRule(THREADS_ORDERED, Kind.RACE, _BARRIER_OF_WARP, Barrier.WARP),
    Seen.KERNEL_OUTSIDE_HEAP: KernelRule(KERNELS_INSIDE, Kind.OUT_OF_BOUNDS, "an access that stays inside a block"),
    Seen.KERNEL_FREED_IN_HEAP: KernelRule(KERNELS_NOT_FREED, Kind.USE_AFTER_FREE, "live memory"),
    Seen.KERNEL_OTHERS_LOCAL: KernelRule(
        KERNELS_INSIDE_LOCAL, Kind.OUT_OF_BOUNDS, "an access that stays inside the local memory of the thread"
    ),
    Seen.KERNEL_USED_UNCOPIED: KernelRule(
        COPIES_AWAITED, Kind.RACE, "a wait for the copy before the access: __pipeline_wait_prior(), cp.async.wait_group"
    ),
    Seen.KERNEL_WAITS_FOR_EVER: KernelRule(
        BARRIERS_END, Kind.DEADLOCK, "a barrier that all threads which have not ended come to"
    ),
    Seen.KERNEL_STACK_OVERFLOW: KernelRule(
        KERNELS_INSIDE_STACK, Kind.STACK_OVERFLOW, "calls that fit into the stack, or a larger cudaLimitStackSize"
    ),
    Seen.KERNEL_LOOKS_FOR_EVER: KernelRule(
        WAITS_END,
        Kind.DEADLOCK,
        "a thread that writes what the others wait for, or a grid.sync() that all blocks come to",
    ),
    Seen.KERNEL_BARRIERS_DIFFER: KernelRule(
        BARRIERS_SAME,
        Kind.DIVERGENT_BARRIER,
        "the same __syncthreads() for all threads of a warp, outside of a branch or a loop that only some of them take",
    ),
    Seen.KERNEL_WARP_LEFT: KernelRule(
        BARRIERS_SAME,
        Kind.DIVERGENT_BARRIER,
        "a __syncthreads() that all threads of a warp come to, outside of a branch or a loop that some leave out",
    ),
    Seen.KERNEL_NO_TEXTURE: KernelRule(KERNELS_TEXTURES, Kind.DEAD_HANDLE, "a texture or surface object that exists"),
    Seen.KERNEL_OUTSIDE_SURFACE: KernelRule(
        KERNELS_INSIDE_SURFACES, Kind.OUT_OF_BOUNDS, "an access that stays inside the surface"
    ),
    Seen.KERNEL_DEPENDS_ON_ORDER: KernelRule(
        KERNELS_ANY_ORDER, Kind.ORDER, "the same bytes in whatever order the blocks and threads run"
    ),
    Seen.KERNEL_SHUFFLES_ABSENT: KernelRule(
        LANES_TAKE_PART, Kind.ABSENT_LANE, "a source lane that is in the mask of the shuffle and comes to it"
    ),
    Seen.KERNEL_FREED_TWICE: KernelRule(FREED_ONCE, Kind.DOUBLE_FREE, "one free of each block"),
    Seen.KERNEL_FREED_FOREIGN: KernelRule(
        OWN_FREED, Kind.INVALID_FREE, "the first address of a block that malloc or new of a kernel returned"
    ),
    Seen.KERNEL_READ_ONLY: KernelRule(KERNELS_KEEP_READ_ONLY, Kind.READ_ONLY, "memory that may be written"),
}


_RACES_IN_SHARED: Final = (Seen.KERNEL_RACE_IN_SHARED, Seen.KERNEL_RACE_IN_WARP)
_RACES_IN_MEMORY: Final = (
    Seen.KERNEL_RACE_OF_BLOCKS,
    Seen.KERNEL_MEMORY_RACE_IN_BLOCK,
    Seen.KERNEL_MEMORY_RACE_IN_WARP,
)
_RACES: Final = (*_RACES_IN_SHARED, *_RACES_IN_MEMORY)
_NEAR_BYTES: Final = 4096
_ELEMENTS: Final = (1, 2, 4, 8, 12, 16, 24, 32)
"""Sizes of elements of which an index may have overflowed, as ``native/kernels/wrong_access.c`` has them."""
_ABSENT: Final = "which takes no part in the shuffle"
_ABSENCES: Final = {
    0: "which the mask of the shuffle leaves out",
    1: "which is in the mask of the shuffle, but ended without coming to it",
    2: "which is in the mask of the shuffle, but is no thread of the block",
}
"""Why a lane takes no part in a shuffle (``native/kernels/wrong_access.h`` has the numbers)."""
_FREES: Final = (Seen.KERNEL_FREED_TWICE, Seen.KERNEL_FREED_FOREIGN)
_WAITS: Final = (Seen.KERNEL_WAITS_FOR_EVER, Seen.KERNEL_LOOKS_FOR_EVER)
_IN_SHARED: Final = (
    Seen.KERNEL_OUTSIDE_SHARED,
    Seen.KERNEL_OUTSIDE_ARRAY,
    Seen.KERNEL_USED_UNCOPIED,
    Seen.KERNEL_SHARED_UNWRITTEN,
    *_RACES_IN_SHARED,
)


def wrong_access(record: Record, accesses: Sequence[LoggedAccess], variable: str = "") -> tuple[Finding, int]:
    """Return the finding about such a record, and the number of the launch's record.

    ``accesses`` are those that the process logged, ``variable`` is the name of the block where it is a variable's.
    """
    rule = KERNEL_RULES[record.seen]
    logged = accesses[record.object] if record.object < len(accesses) else None
    who = _who(logged)
    verb = "writes" if record.flags & Flag.WRITES else "reads"
    if record.seen is Seen.KERNEL_READ_UNWRITTEN and record.flags & Flag.WRITES:
        verb = "reads and writes"  # an atomic operation
    launch = logged.launch if logged else record.number
    if record.seen in (*_WAITS, Seen.KERNEL_DEPENDS_ON_ORDER):
        what = _waiting(record, logged, variable) if record.seen in _WAITS else _other_bytes(record, variable)
        return _without_place(record, rule, logged, launch, what), launch
    if record.seen is Seen.KERNEL_NO_TEXTURE:
        observed = f"{who} uses {record.address:#x}, which is no texture or surface that exists"
    elif record.seen in (Seen.KERNEL_BARRIERS_DIFFER, Seen.KERNEL_WARP_LEFT):
        observed = f"{who} waits at a barrier"
    elif record.seen is Seen.KERNEL_SHUFFLES_ABSENT:
        observed = (
            f"{who} uses the value of lane {record.address} of the warp, {_ABSENCES.get(record.size_bytes, _ABSENT)}"
        )
    elif record.seen is Seen.KERNEL_STACK_OVERFLOW:
        has = bytes_in_words(record.other_bytes)
        observed = f"{who} calls functions deeper than its stack allows, of which each thread has {has}"
    elif record.seen in _FREES:
        observed = f"{who} frees {record.address:#x}{_miss(record, variable)}"
    else:
        observed = f"{who} {verb} {bytes_in_words(record.size_bytes)} {_where(record)}{_miss(record, variable)}"
    request = record.function
    if record.seen is Seen.KERNEL_OUTSIDE_ARRAY:
        observed += _of_array(record, logged)
    if logged:
        observed += f"{_thread(logged)}, at {_place(logged.place)}{_other(record, logged)}{_history(logged, accesses)}"
        request = f"{logged.kernel} at {_place(logged.place)}"
    finding = Draft(
        rule.name,
        _expected(record, rule, logged),
        observed,
        operation_index=launch,
        request=request,
        kind=rule.kind,
        evidence="" if not logged or logged.place.source or logged.place.operand else how_to_get_lines(logged.symbol),
        seen=logged.count if logged else 1,
        tests=_tests(logged),
        barrier=rule.barrier,
    )
    return finding, launch


def _who(logged: LoggedAccess | None) -> str:
    if logged is None:
        return "a kernel"
    return logged.kernel if logged.place.operand else f"kernel '{logged.kernel}'"


def _thread(logged: LoggedAccess) -> str:
    if logged.place.operand:
        return ""
    return f", in thread {_index(logged.thread)} of block {_index(logged.block)}"


def with_source(finding: Finding, record: Record, accesses: Sequence[LoggedAccess], sources: ProgramSources) -> Finding:
    """Return the finding about such a record with the lines of source that the kernel was compiled from."""
    if record.object >= len(accesses):
        return finding
    return replace(finding, quoted=quotations(accesses[record.object], sources))


def needs_more(finding: Finding, than: Finding) -> bool:
    """Return whether a race is between warps and another inside a warp, so that the barrier for that is not enough."""
    if not isinstance(finding, Draft) or not isinstance(than, Draft):
        return False
    return finding.barrier is Barrier.BLOCK and than.barrier is Barrier.WARP


def _expected(record: Record, rule: KernelRule, logged: LoggedAccess | None) -> str:
    other = logged.other if record.seen in _RACES and logged else None
    if logged and other and other.writes and record.flags & Flag.WRITES and other.place == logged.place:
        if record.seen is Seen.KERNEL_RACE_OF_BLOCKS:
            return "different bytes for each block, or an atomic operation (atomicAdd)"
        return f"different bytes for each thread, an atomic operation or, in a loop, {rule.expected}"
    is_one_line = logged and other and other.place.source and other.place.source == logged.place.source
    if is_one_line and record.seen in _RACES_IN_MEMORY and record.seen is not Seen.KERNEL_RACE_OF_BLOCKS:
        return f"an atomic operation (atomicAdd), or {rule.expected}"
    return rule.expected


def _without_place(record: Record, rule: KernelRule, logged: LoggedAccess | None, launch: int, what: str) -> Finding:
    """Return the finding about what no instruction alone did."""
    return Finding(
        rule.name,
        rule.expected,
        f"{_who(logged)}: {what}",
        operation_index=launch,
        request=logged.kernel if logged else record.function,
        kind=rule.kind,
        seen=logged.count if logged else 1,
        tests=_tests(logged),
    )


def _waiting(record: Record, logged: LoggedAccess | None, variable: str) -> str:
    """Return which threads wait for ever, and where."""
    said = "its threads wait for each other for ever"
    if logged is None:
        return said
    what = ""
    if record.other:
        what = f" for a change of {bytes_in_words(record.size_bytes)} {_where(record)}, "
        what += f"{_into(record)} {_block(record, variable)},"
    said += f"; thread {_index(logged.thread)} of block {_index(logged.block)} waits{what}{_if_known(logged.place)}"
    if logged.other:
        other = logged.other
        said += f"; thread {_index(other.thread)} of block {_index(other.block)} waits{_if_known(other.place)}"
    return said


def _if_known(place: Place) -> str:
    return f" at {_place(place)}" if place.source or place.ptx_line else ""


def _other_bytes(record: Record, variable: str) -> str:
    verb = "is" if record.size_bytes == 1 else "are"
    return (
        f"{bytes_in_words(record.size_bytes)} {verb} different if its blocks and threads run in another order; the "
        f"first one is at {record.address:#x}, {_into(record)} {_block(record, variable)}"
    )


def _tests(logged: LoggedAccess | None) -> tuple[str, ...]:
    return (logged.test,) if logged and logged.test else ()


def _where(record: Record) -> str:
    if record.seen in _IN_SHARED:
        return f"at byte {_signed(record.address):,} of shared memory"
    if record.seen is Seen.KERNEL_OUTSIDE_SURFACE:
        at, row = map(_signed, (record.address, record.other))
        return f"at byte {at:,} of row {row:,} of a surface"
    return f"at {record.address:#x}"


def _miss(record: Record, variable: str) -> str:
    """Return how an access is wrong, in words that follow its address."""
    match record.seen:
        case Seen.KERNEL_OUT_OF_BOUNDS:
            if not record.other:
                return ", where no memory is allocated"
            return _distance(record, _block(record, variable)) + _overflow(record)
        case Seen.KERNEL_OUTSIDE_HEAP:
            return _distance(record, _heap_block(record))
        case Seen.KERNEL_FREED_IN_HEAP:
            return f", {_into(record)} {_heap_block(record)} that was freed before"
        case Seen.KERNEL_FREED_TWICE:
            return f", {_heap_block(record)} that was freed before"
        case Seen.KERNEL_FREED_FOREIGN:
            return f", {_freed(record, variable)}"
        case Seen.KERNEL_USED_FREED:
            if variable:
                return f", {_into(record)} variable '{variable}' of a module that was unloaded before"
            return f", {_into(record)} a block that was freed before"
        case Seen.KERNEL_MISALIGNED:
            return f", which is not a multiple of {record.size_bytes}"
        case Seen.KERNEL_READ_UNWRITTEN:
            some = "of which nobody has written some"
            return f", {some if record.flags & Flag.PARTLY else 'which nobody has written'}"
        case Seen.KERNEL_SHARED_UNWRITTEN:
            return ", which no thread of the block has written"
        case Seen.KERNEL_RACE_OF_BLOCKS | Seen.KERNEL_MEMORY_RACE_IN_BLOCK | Seen.KERNEL_MEMORY_RACE_IN_WARP:
            return f", {_into(record)} {_block(record, variable)}"
        case (
            Seen.KERNEL_RACE_IN_SHARED
            | Seen.KERNEL_OUTSIDE_ARRAY
            | Seen.KERNEL_RACE_IN_WARP
            | Seen.KERNEL_USED_UNCOPIED
        ):
            return ""
        case Seen.KERNEL_OUTSIDE_SHARED:
            return f", of which a block has {bytes_in_words(record.other_bytes)}"
        case Seen.KERNEL_OUTSIDE_SURFACE:
            return f", whose rows have {bytes_in_words(record.other_bytes)}"
        case Seen.KERNEL_OUTSIDE_LOCAL:
            return _distance(record, f"a local array of {bytes_in_words(record.other_bytes)}")
        case Seen.KERNEL_OTHERS_LOCAL:
            return ", which is local memory of another thread"
        case Seen.KERNEL_OTHER_DEVICE:
            return f", which device {record.device} has no access to"
        case Seen.KERNEL_READ_ONLY:
            place = f", {_into(record)} {_block(record, variable)}" if variable else ""
            return f"{place}, which may only be read"
        case _:
            return _strange(record, variable)


def _strange(record: Record, variable: str) -> str:
    """Return what lies at an address that only the host or only a device can use."""
    if record.other and record.thing is Thing.DEVICE:  # the host's own access, by a function of a library
        return f", {_into(record)} {_block(record, variable)}, which the host can't use; its pointer mode is the host's"
    return _null(record) if record.flags & Flag.OF_NULL else ", which is no memory of a device"


def _null(record: Record) -> str:
    offset = _signed(record.address)
    where = "after" if offset > 0 else "before"
    return f", {bytes_in_words(abs(offset))} {where} a null pointer" if offset else ", a null pointer"


def _signed(number: int) -> int:
    return number - (1 << 64 if number >> 63 else 0)


def _overflow(record: Record) -> str:
    """Return where the access would be with an index of more bits, if its address is 2^32 elements off; or nothing."""
    start, end = record.other, record.other + record.other_bytes
    if start - _NEAR_BYTES <= record.address <= end + _NEAR_BYTES:
        return ""
    for element, sign in itertools.product((record.size_bytes, *_ELEMENTS), (-1, 1)):
        meant = record.address + sign * (element << 32)
        if start - element <= meant <= end + element:
            less = "less" if sign < 0 else "more"
            times = f" times {element}" if element > 1 else ""
            return (
                f"; with 2^32{times} bytes {less} it would be {_offset(meant - start, record.other_bytes)}: an index "
                "of 32 bits seems to have overflowed (int, unsigned); compute it with 64 bits (size_t, long long)"
            )
    return ""


def _offset(offset: int, size_bytes: int) -> str:
    if 0 <= offset < size_bytes:
        return f"at byte {offset:,} of the block"
    if offset < 0:
        return f"{bytes_in_words(-offset)} before its start"
    return "directly after its end" if offset == size_bytes else f"{bytes_in_words(offset - size_bytes)} after its end"


def _of_array(record: Record, logged: LoggedAccess | None) -> str:
    name, used = logged.arrays if logged else ("", "")
    own = (f"'{name}', " if name else "") + f"a shared array of {bytes_in_words(record.other_bytes)}"
    return _distance(record, own) + (f", in '{used}'" if used else "")


def _into(record: Record) -> str:
    offset = record.address - record.other
    return f"{bytes_in_words(offset)} into" if offset else "at the start of"


def _freed(record: Record, variable: str) -> str:
    """Return what a kernel frees that is no block of a device's heap."""
    if not record.other:
        return "which is no memory of the device's heap"
    block = _block(record, variable)
    where = block if record.address == record.other else f"{_into(record)} {block}"
    return where if record.thing is Thing.HEAP else f"{where}, which no kernel allocated"


def _block(record: Record, variable: str) -> str:
    if variable:
        return f"variable '{variable}' of {bytes_in_words(record.other_bytes)}"
    if record.thing is Thing.HEAP:
        return _heap_block(record)
    return f"a {thing_in_words(record.thing)} block of {bytes_in_words(record.other_bytes)}"


def _heap_block(record: Record) -> str:
    return f"a block of {bytes_in_words(record.other_bytes)} of the device's heap"


def _distance(record: Record, block: str) -> str:
    end = record.other + record.other_bytes
    if record.address < record.other:
        return f", {bytes_in_words(record.other - record.address)} before the start of {block}"
    if record.address < end:
        return f", of which {bytes_in_words(record.address + record.size_bytes - end)} lie after the end of {block}"
    if record.address == end:
        return f", directly after the end of {block}"
    return f", {bytes_in_words(record.address - end)} after the end of {block}"


def _index(index: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, index))})"


def _other(record: Record, logged: LoggedAccess) -> str:
    """Return the access that another one meets, in words that follow the place of that one."""
    if logged.other is None:
        return ""
    if record.seen is Seen.KERNEL_WARP_LEFT:
        return f"; thread {_index(logged.other.thread)} of the same warp has ended, and never comes there"
    thread, place = _index(logged.other.thread), _place(logged.other.place)
    if record.seen is Seen.KERNEL_OTHERS_LOCAL:
        return f"; it is that of thread {thread}"
    if record.seen is Seen.KERNEL_BARRIERS_DIFFER:
        return f"; thread {thread} of the same warp waits at {place}"
    if record.seen is Seen.KERNEL_USED_UNCOPIED:
        return f"; thread {thread} copies there at {place}, and has not waited for the copy"
    verb = "writes" if logged.other.writes else "reads"
    if record.seen is Seen.KERNEL_RACE_OF_BLOCKS:
        block = _index(logged.other.block)
        return f"; thread {thread} of block {block} {verb} there at {place}, and nothing orders the two blocks"
    if record.seen in (Seen.KERNEL_RACE_IN_WARP, Seen.KERNEL_MEMORY_RACE_IN_WARP):
        why = ". Both threads are in one warp, and no barrier of the warp is in between"
    else:
        why = ", and no barrier of the block is in between"
    return f"; thread {thread} {verb} there at {place}{why}"


def _history(logged: LoggedAccess, accesses: Sequence[LoggedAccess]) -> str:
    """Return who allocated the block of a device's heap that an access misses, and who freed it."""
    said = ""
    for verb, line in (("allocated", logged.made), ("freed", logged.freed)):
        if line is not None and line < len(accesses):
            said += f"; {call_in_kernel(accesses[line], verb)}"
    return said


def call_in_kernel(logged: LoggedAccess, verb: str, what: str = "it") -> str:
    """Return ``kernel 'k' allocated it in thread (0, 0, 0) of block (0, 0, 0), at FILE:LINE``."""
    thread = f"thread {_index(logged.thread)} of block {_index(logged.block)}"
    return f"kernel '{logged.kernel}' {verb} {what} in {thread}, at {_place(logged.place)}"


def _place(place: Place) -> str:
    """Return the line of the source, or that of the PTX with the instruction there."""
    if place.operand:
        return f"{OPERAND}{place.operand}"
    if not place.source:
        return f"'{place.instruction}' (line {place.ptx_line} of its PTX)"
    return _line(place.source) + (f", inlined at {_line(place.caller)}" if place.caller else "")


def _line(source: str) -> str:
    file, _, line = source.rpartition(":")
    return f"{shown_path(file)}:{line}"
