"""What a call of the runtime may do by itself: frees, copies, handles and waits that are wrong, as findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from quiesce.allocators.oracle import Oracle
from quiesce.model.backend import Capability, Description, DeviceProfile, Reply
from quiesce.model.findings import Finding
from quiesce.model.operations import Mark
from quiesce.model.outcomes import Done, Flavour
from quiesce.model.program_rules import (
    AFTER_UNCHANGED,
    COPIED_DIRECTLY,
    COPIES_DIRECTED,
    COPIES_READ_WRITTEN,
    FREED_ONCE,
    INSIDE,
    LIVE_HANDLES,
    NOT_USED_FREED,
    OWN_FREED,
)
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.wording import thing_in_words
from quiesce.simulator.runtime import Flag, Record, Seen, Thing, observations_of

_DIRECTIONS: Final = ("HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice")
"""By their numbers in ``cudaMemcpyKind`` and ``hipMemcpyKind``."""
_PLACES: Final = ("host memory", "pinned host memory", "device memory", "managed memory")
"""By the numbers of ``native/order/transfer.c``."""
_DEVICE: Final = 2


def wrong_copy(record: Record) -> Finding | None:
    """Return the finding about such a record; None for another one, and for what is no more than a note."""
    if record.seen is Seen.COPY_MISDIRECTED:
        return _misdirected(record)
    if record.seen is Seen.COPIED_UNWRITTEN and record.flags & Flag.STRICT:
        return _unwritten(record)
    return None


def unwritten_in_words(record: Record) -> str:
    """Return what a copy reads that nobody has written, in words that follow the call."""
    offset = record.address - record.other
    where = f"{bytes_in_words(offset)} into" if offset else "at the start of"
    block = f"a {thing_in_words(record.thing)} block of {bytes_in_words(record.other_bytes)}"
    return f"copies {bytes_in_words(record.size_bytes)} to the host that nobody has written, the first {where} {block}"


def _unwritten(record: Record) -> Finding:
    return Finding(
        COPIES_READ_WRITTEN,
        "device memory that was written before",
        f"{record.function} {unwritten_in_words(record)}",
        operation_index=record.object,
        request=record.function,
        kind=Kind.UNWRITTEN,
    )


def _misdirected(record: Record) -> Finding:
    kind, source, target = (record.object >> shift & 0xFF for shift in (0, 8, 16))
    fitting = (2 if source == _DEVICE else 0) + (1 if target == _DEVICE else 0)
    return Finding(
        COPIES_DIRECTED,
        f"a direction that fits the addresses: {_direction(record, fitting)}",
        f"{record.function} copies {bytes_in_words(record.size_bytes)} as {_direction(record, kind)}, "
        f"from {record.other:#x}, which is {_PLACES[source]}, to {record.address:#x}, which is {_PLACES[target]}",
        operation_index=record.number,
        request=record.function,
        kind=Kind.WRONG_DIRECTION,
    )


def _direction(record: Record, kind: int) -> str:
    flavour = "hip" if record.function.startswith("hip") else "cuda"
    return f"{flavour}Memcpy{_DIRECTIONS[kind]}"


def oracle_of_order(flavour: Flavour) -> Oracle:
    """Return an oracle that judges waits; memory and order are judged by byte, not by slot."""
    claims = frozenset({Capability.STREAMS, Capability.EVENTS, Capability.ORDER_LEDGER})
    return Oracle(Description("simulated", "1", claims), DeviceProfile(flavour=flavour))


_WAITS: Final = (Seen.STREAM_WAITED, Seen.EVENT_WAITED)


def broken_rules_of_order(oracle: Oracle, record: Record, origins: Origins) -> Iterator[Finding]:
    """Yield the rules that a wait breaks."""
    if record.seen not in _WAITS or record.flags & Flag.OF_GRAPH:
        return
    if observations := tuple(observations_of(record, {})):
        for finding in oracle.judge(Mark("call"), Reply(Done(), observations), {}, {}, ""):
            sites = (origins.site("waited by", record),)
            yield replace(finding, operation_index=record.number, request=record.function, call_sites=sites)


# -- what the runtime saw at once --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    kind: Kind
    expected: str
    observed: str


_AT_ONCE: Final = {
    Seen.FREED_TWICE: _Rule(
        FREED_ONCE, Kind.DOUBLE_FREE, "one free of each block", "{function} of {address:#x}, which was freed before"
    ),
    Seen.FREED_FOREIGN: _Rule(
        OWN_FREED,
        Kind.INVALID_FREE,
        "the first address of a block that the same family of functions allocated",
        "{function} of {address:#x}, where no such block begins",
    ),
    Seen.USED_AFTER_FREE: _Rule(
        NOT_USED_FREED,
        Kind.USE_AFTER_FREE,
        "live memory",
        "{function} uses {size} at {address:#x}, freed before",
    ),
    Seen.FREED_WHILE_OPEN: _Rule(
        NOT_USED_FREED,
        Kind.USE_AFTER_FREE,
        "a free after every process that opened the memory has closed it",
        "{function} of {size} at {address:#x}, which another process has open",
    ),
    Seen.OUT_OF_BOUNDS: _Rule(
        INSIDE,
        Kind.OUT_OF_BOUNDS,
        "a use that stays inside its block",
        "{function} uses {size} at {address:#x}; the block ends at {other:#x}",
    ),
    Seen.DAMAGED: _Rule(
        AFTER_UNCHANGED,
        Kind.OVERFLOW,
        "unchanged bytes after the block at {address:#x}",
        "the byte at {other:#x} was changed; {function} detected it",
    ),
    Seen.DEAD_HANDLE: _Rule(
        LIVE_HANDLES,
        Kind.DEAD_HANDLE,
        "a live handle",
        "{function} {of} {thing} {address:#x}, which was destroyed before",
    ),
    Seen.STAGED_AGAIN: _Rule(
        COPIED_DIRECTLY,
        Kind.NEEDLESS_COPY,
        "a direct copy from the pinned block at {other:#x}, which the program asked about",
        "{function} copies the same {size} from another pinned block, at {address:#x}",
    ),
}

_NOT_MAPPED: Final = _Rule(
    NOT_USED_FREED,
    Kind.USE_AFTER_FREE,
    "host memory that stays mapped until the copy is complete",
    "a copy still has {size} to go at {address:#x}, where no memory is mapped; {function} detected it",
)
_OF_HEAP: Final = _Rule(
    OWN_FREED,
    Kind.INVALID_FREE,
    "a block that the host allocated; a kernel has to free what a kernel allocated",
    "{function} of {address:#x}, a block of the device's heap{maker}",
)
_OF_VARIABLES: Final = {
    Seen.FREED_FOREIGN: "{function} of {address:#x}, which is variable '{variable}'",
    Seen.USED_AFTER_FREE: "{function} uses {size} at {address:#x}, variable '{variable}' of a module that was unloaded",
    Seen.OUT_OF_BOUNDS: "{function} uses {size} at {address:#x}; variable '{variable}' ends at {other:#x}",
}
"""What is observed where the block is a variable of device code."""


def _rule_at_once(record: Record) -> _Rule | None:
    if record.seen is Seen.FREED_FOREIGN and record.thing is Thing.HEAP:
        return _OF_HEAP
    is_of_host = record.seen is Seen.USED_AFTER_FREE and record.thing is Thing.REGISTERED
    return _NOT_MAPPED if is_of_host else _AT_ONCE.get(record.seen)


def broken_at_once(record: Record, origins: Origins) -> Finding | None:
    """Return the rule that a call broke as the runtime saw at once, None where it broke none."""
    if (rule := _rule_at_once(record)) is None:
        return None
    variable = origins.variable_of(record)
    words = {
        "function": record.function,
        "address": record.address,
        "other": record.other,
        "size": bytes_in_words(record.size_bytes),
        "thing": thing_in_words(record.thing),
        "of": "in" if record.thing is Thing.CONTEXT and not record.function.startswith("cuCtx") else "of",
        "variable": variable,
        "maker": origins.allocation_in_kernel(record.object) if rule is _OF_HEAP else "",
    }
    observed = _OF_VARIABLES.get(record.seen, rule.observed) if variable else rule.observed
    return Finding(
        rule.name,
        rule.expected.format(**words),
        observed.format(**words),
        operation_index=record.number,
        request=record.function,
        kind=rule.kind,
    )
