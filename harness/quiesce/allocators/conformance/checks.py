"""Checks of the contract that no sequence makes by itself: what a backend says of itself, and what a context is.

Each takes a backend and yields what it found broken; what it raises is a :class:`quiesce.model.backend.BackendFault`
or a
:class:`BackendUnavailable`, as :mod:`quiesce.allocators.answers` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from quiesce.allocators.answers import AnsweringContext, describe_backend, open_context
from quiesce.allocators.lockstep import contract_finding
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, BackendFault, Capability, Description, DeviceProfile, Promise
from quiesce.model.errors import BackendUnavailable
from quiesce.model.findings import Finding
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.operations import MemoryKind, Operation
from quiesce.model.outcomes import Allocated, Done, describe
from quiesce.model.rules import (
    BEGIN_ALIKE,
    CLAIMS_REST,
    CLOSE_AGAIN,
    HOLD_NOTHING,
    MAKES_SENSE,
    RAISED,
    READ_ALIKE,
    SHARE_NOTHING,
)

_SIZE_BYTES: Final = 4096
_SERVED: Final = (Allocated, Done)


class NotExercised(Exception):
    """A check has nothing to look at on this backend; the text says why."""


Check: TypeAlias = Callable[[Backend], Iterator[Finding]]


def description_makes_sense(backend: Backend) -> Iterator[Finding]:
    """Look at names and figures."""
    said = describe_backend(backend)
    for field, text in (("name", said.name), ("version", said.version)):
        if not text.strip() or not text.isprintable():
            yield contract_finding(MAKES_SENSE, f"a {field} of printable characters, not empty", f"{field}={text!r}")
    if said.alignment_bytes < 1 or said.alignment_bytes & (said.alignment_bytes - 1):
        instead = "a power of two that divides every block's address; 1 guarantees nothing"
        yield contract_finding(MAKES_SENSE, instead, f"alignment_bytes={said.alignment_bytes}")
    if said.chunk_bytes < 0:
        instead = "the most backing bytes that a tiny request may take; 0 where it takes its own size"
        yield contract_finding(MAKES_SENSE, instead, f"chunk_bytes={said.chunk_bytes}")
    if said.footprint_factor < 1:
        instead = "how many times its size a request may take, at least 1"
        yield contract_finding(MAKES_SENSE, instead, f"footprint_factor={said.footprint_factor}")
    for gauge, sources in said.gauges.items():
        if not sources:
            instead = f"who counts '{gauge}' (Source.CLAIM, Source.LEDGER or both), or leave the gauge out"
            yield contract_finding(MAKES_SENSE, instead, f"{gauge} is described without a source")


RESTS_ON: Final[Mapping[Capability, frozenset[Capability]]] = {
    Capability.POOL_LIMIT: frozenset({Capability.POOLS}),
    Capability.STAGING: frozenset({Capability.MEMORY}),
    Capability.STALL: frozenset({Capability.STREAMS}),
    Capability.LEGACY_DEFAULT_STREAM: frozenset({Capability.STREAMS}),
    Capability.CAPTURE: frozenset({Capability.STREAMS}),
}
"""What a claim means nothing without."""
_PROMISES: Final[Mapping[Promise, frozenset[Capability]]] = {
    Promise.WAITS_BEFORE_OOM: frozenset({Capability.STREAMS}),
    Promise.ALLOCATES_IN_CAPTURES: frozenset({Capability.CAPTURE}),
    Promise.KEEPS_GRAPH_MEMORY: frozenset({Capability.CAPTURE}),
    Promise.SHARES_BACKING: frozenset({Capability.POOLS}),
    Promise.CAPACITY_LIMIT: frozenset({Capability.CAPACITY}),
    Promise.TRACKS_USES: frozenset({Capability.STREAMS}),
    Promise.STAGES_PINNED_DIRECTLY: frozenset({Capability.STAGING, Capability.PINNED}),
    Promise.ROUNDS_PINNED_TO_POWERS_OF_TWO: frozenset({Capability.PINNED}),
    Promise.REINITIALIZES: frozenset({Capability.LIFECYCLE}),
    Promise.INITIALIZES_ONCE: frozenset({Capability.LIFECYCLE}),
    Promise.COLLECTS_AT_ONCE: frozenset({Capability.TAPE}),
}
_COUNTED: Final[Mapping[Promise, Gauge]] = {Promise.FLAT_COST: Gauge.COST, Promise.COLLECTS_AT_ONCE: Gauge.NODES}


def claims_rest_on_capabilities(backend: Backend) -> Iterator[Finding]:
    """Look for claims and promises that nobody could test, because what they are about is not claimed."""
    said = describe_backend(backend)
    for kind, rests in (("capability", RESTS_ON), ("promise", _PROMISES)):
        for claim, needed in rests.items():
            missing = sorted(needed - said.capabilities)
            if missing and claim in (said.capabilities | said.promises):
                instead = f"claim {', '.join(missing)} as well, or leave '{claim}' out: there it means nothing"
                yield contract_finding(CLAIMS_REST, instead, f"{kind} '{claim}' without {', '.join(missing)}")
    for promise, gauge in _COUNTED.items():
        if promise in said.promises and gauge not in said.gauges:
            instead = f"describe and read the gauge '{gauge}', which counts it, or leave '{promise}' out"
            yield contract_finding(CLAIMS_REST, instead, f"promise '{promise}' without the gauge '{gauge}'")


def contexts_begin_alike(backend: Backend) -> Iterator[Finding]:
    """Leave a context behind with something in it, and read the next one. The first of all may warm something up."""
    make, _ = _smallest(describe_backend(backend))
    first: Readings | None = None
    for _ in range(3):
        context = _open(backend)
        try:
            began = context.readings()
            context.perform(make)
        finally:
            context.close()
        if first is not None and (finding := _differs(BEGIN_ALIKE, first, began, _FRESH, "a context began with")):
            yield finding
            return
        first = began


_FRESH: Final = "keep everything in the context that open() returns, nothing in the backend or its module"


def contexts_share_nothing(backend: Backend) -> Iterator[Finding]:
    """Drive two contexts in turns, with the same slot in both."""
    make, end = _smallest(describe_backend(backend))
    one = _open(backend)
    try:
        try:
            other = _open(backend)
        except BackendUnavailable as unavailable:
            raise NotExercised(f"one context at a time: {unavailable.reason}") from None
        try:
            yield from _in_turns(one, other, make, end)
        finally:
            other.close()
    finally:
        one.close()


def _in_turns(one: AnsweringContext, other: AnsweringContext, make: Operation, end: Operation) -> Iterator[Finding]:
    empty = other.readings()
    if not isinstance(one.perform(make).outcome, _SERVED):
        raise NotExercised("the smallest request is not served")
    full = one.readings()
    if finding := _differs(SHARE_NOTHING, empty, other.readings(), _FRESH, "a request to another context left"):
        yield finding
        return
    outcome = other.perform(make).outcome
    if not isinstance(outcome, _SERVED):
        yield contract_finding(SHARE_NOTHING, _FRESH, f"the slot of another context: {describe(outcome)}")
        return
    other.close()
    if finding := _differs(SHARE_NOTHING, full, one.readings(), _FRESH, "closing another context left"):
        yield finding
        return
    outcome = one.perform(end).outcome
    if not isinstance(outcome, _SERVED):
        yield contract_finding(
            SHARE_NOTHING, _FRESH, f"what closing another context did to this one's slot: {describe(outcome)}"
        )


def reading_changes_nothing(backend: Backend) -> Iterator[Finding]:
    """Read twice in a row, with something in the context."""
    description = describe_backend(backend)
    if not description.gauges:
        raise NotExercised("lacks gauges")
    make, _ = _smallest(description)
    context = _open(backend)
    try:
        context.perform(make)
        first, second = context.readings(), context.readings()
    finally:
        context.close()
    instead = "a ledger that counts nothing of what readings() itself takes, nor what is done between two requests"
    if finding := _differs(READ_ALIKE, first, second, instead, "read again, with nothing asked in between,"):
        yield finding


def closing_is_idempotent(backend: Backend) -> Iterator[Finding]:
    """Close a context that owns something, twice."""
    make, _ = _smallest(describe_backend(backend))
    context = _open(backend)
    context.perform(make)
    first, second = context.close().readings, context.close().readings
    instead = "close() that releases everything the first time and reads the gauges every time"
    if finding := _differs(CLOSE_AGAIN, first, second, instead, "closing again read"):
        yield finding


def closed_contexts_hold_nothing(backend: Backend) -> Iterator[Finding]:
    """Ask a closed context for something, and close it again."""
    make, _ = _smallest(describe_backend(backend))
    context = _open(backend)
    closed = context.close().readings
    try:
        outcome = context.perform(make).outcome
    except BackendFault as fault:
        if fault.rule != RAISED:
            return  # the subject is gone, which is what a fault is for
        raise
    again = context.close().readings
    instead = "Rejected(ILLEGAL_STATE) for every request to a closed context"
    left = {key: value for key, value in again.items() if not key[0].cumulative}
    was = {key: value for key, value in closed.items() if not key[0].cumulative}
    if finding := _differs(HOLD_NOTHING, was, left, instead, f"a closed context answered {describe(outcome)} and kept"):
        yield finding


def _open(backend: Backend) -> AnsweringContext:
    return open_context(backend, DeviceProfile())


def _smallest(description: Description) -> tuple[Operation, Operation]:
    """Return the smallest request that makes something here, and the one that ends it."""
    can = description.capabilities
    kinds = (
        (Capability.MEMORY, MemoryKind.DEVICE),
        (Capability.PINNED, MemoryKind.PINNED),
        (Capability.MANAGED, MemoryKind.MANAGED),
        (Capability.PAGEABLE, MemoryKind.PAGEABLE),
    )
    for capability, kind in kinds:
        if capability in can:
            return ops.Allocate("a", _SIZE_BYTES, kind), ops.Free("a")
    others: tuple[tuple[Capability, Operation, Operation], ...] = (
        (Capability.STREAMS, ops.CreateStream("a"), ops.DestroyStream("a")),
        (Capability.EVENTS, ops.CreateEvent("a"), ops.DestroyEvent("a")),
        (Capability.TAPE, ops.Node("a"), ops.Drop("a")),
        (Capability.INSTANCES, ops.CreateInstance("a"), ops.DestroyInstance("a")),
        (Capability.LIFECYCLE, ops.Initialize(), ops.Finalize()),
    )
    for capability, make, end in others:
        if capability in can:
            return make, end
    raise NotExercised("it claims nothing that could be made")


def _differs(rule: str, expected: Readings, observed: Readings, instead: str, what: str) -> Finding | None:
    """Return a finding about the first gauge that reads otherwise; which are read at all is judged elsewhere."""
    for key in sorted(expected.keys() & observed.keys()):
        gauge, source = key
        if expected[key] != observed[key]:
            by = f" by its {source}" if source is Source.LEDGER else ""
            return contract_finding(rule, instead, f"{what} {gauge} of {observed[key]}{by}, not {expected[key]}")
    return None


@dataclass(frozen=True, slots=True)
class ContractCheck:
    """A rule, and what looks at it."""

    rule: str
    check: Check


CHECKS: Final = (
    ContractCheck(MAKES_SENSE, description_makes_sense),
    ContractCheck(CLAIMS_REST, claims_rest_on_capabilities),
    ContractCheck(BEGIN_ALIKE, contexts_begin_alike),
    ContractCheck(SHARE_NOTHING, contexts_share_nothing),
    ContractCheck(READ_ALIKE, reading_changes_nothing),
    ContractCheck(CLOSE_AGAIN, closing_is_idempotent),
    ContractCheck(HOLD_NOTHING, closed_contexts_hold_nothing),
)
"""In the order in which they are made: a later one relies on what an earlier one found in order."""
