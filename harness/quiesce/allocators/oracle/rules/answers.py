"""Rules of answers: permitted outcomes, and outcomes that a case states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.footprints import certain_room, known_footprint, shared_chunks, worst_footprint
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.permits import Permitted
from quiesce.allocators.oracle.rule import MAKING_BLOCKS, Rule, found
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Promise
from quiesce.model.findings import Finding
from quiesce.model.observations import BackingRefused
from quiesce.model.operations import MemoryKind, Operation
from quiesce.model.outcomes import CAPTURE_INVALIDATED, Allocated, Done, Outcome, OutOfMemory, Rejected, describe
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words

FITS: Final = "request_fits_but_out_of_memory"
SERVED: Final = "valid_requests_are_served"
REFUSED: Final = "invalid_requests_are_refused"
DOCUMENTED: Final = "errors_are_the_documented_ones"
ENFORCED: Final = "capacity_is_enforced"
PASSED_ON: Final = "foreign_errors_are_passed_on"
_KINDS: Final = {
    FITS: Kind.MISSING_RETRY,
    SERVED: Kind.REFUSED_REQUEST,
    REFUSED: Kind.SERVED_MISUSE,
    DOCUMENTED: Kind.WRONG_ERROR,
    ENFORCED: Kind.LIMIT,
}
EXPECTATION_NAMES: Final = tuple(_KINDS)
"""The rules that a wrong answer breaks."""


def judge_answer(
    operation: Operation, outcome: Outcome, permitted: Permitted, spoiled_by: str = ""
) -> Iterator[Finding]:
    """Name the rule that an outcome breaks which is not in the permitted set, taken before the operation ran.

    ``spoiled_by`` is the request whose refusal may have made a capture invalid.
    """
    observed = describe(outcome)
    expected = str(permitted)
    if CAPTURE_INVALIDATED in permitted.codes and spoiled_by:
        expected += f", because '{spoiled_by}' was refused during the capture"
    elif isinstance(outcome, Rejected) and outcome.code == CAPTURE_INVALIDATED:
        expected += ": no request was refused since the capture began"
    match outcome:
        case Allocated() | Done():
            yield _wrong_answer(REFUSED, expected, observed)
        case OutOfMemory():
            yield _wrong_answer(SERVED, expected, observed)
        case Rejected():
            yield _wrong_answer(DOCUMENTED if permitted.codes else SERVED, expected, observed)
        case _:
            pass


def judge_expectation(expected: str, matches: bool, outcome: Outcome) -> Iterator[Finding]:
    """Name the rule that an outcome breaks where the case states another one (``expected`` in the case's words)."""
    if matches:
        return
    succeeded = isinstance(outcome, Allocated | Done)
    if expected in ("allocated", "done"):
        name = FITS if isinstance(outcome, OutOfMemory) else SERVED
    elif expected == "out of memory":
        name = ENFORCED if succeeded else DOCUMENTED
    else:
        name = REFUSED if succeeded else DOCUMENTED
    yield _wrong_answer(name, expected, describe(outcome))


def _wrong_answer(name: str, expected: str, observed: str) -> Finding:
    return Finding(name, expected, observed, kind=_KINDS[name])


def request_fits_but_out_of_memory(model: Model, change: Change) -> Iterator[Finding]:
    """A pool that reclaims before it fails does not fail a request that fits, at its worst, what is certainly free.

    Nor does it fail a request without having asked for as little as the request needs at its worst.
    """
    operation = change.operation
    if not isinstance(change.outcome, OutOfMemory) or not isinstance(operation, ops.Allocate):
        return
    if change.armed is not None or model.captures.any_active or not model.can(Capability.CAPACITY):
        return
    if operation.kind is MemoryKind.PAGEABLE or not operation.size_bytes:
        return
    need = worst_footprint(model, operation.kind, operation.size_bytes, operation.alignment_bytes or 0)
    if why := _why_it_fits(model, change, operation, need):
        yield found(f"allocated{why}", "out of memory")
        return
    least = _least_asked(change)
    if operation.kind is MemoryKind.DEVICE and least > need:
        expected = f"a request to the backing allocator for at most {bytes_in_words(need)}"
        observed = f"out of memory after requests for at least {bytes_in_words(least)}"
        yield found(f"{expected}, as chunk_bytes and footprint_factor say, before it fails", observed)


def _why_it_fits(model: Model, change: Change, operation: ops.Allocate, need_bytes: int) -> str:
    """Say what shows that a request fits that takes ``need_bytes`` at worst; nothing where it may not fit."""
    room = certain_room(model, operation.kind, operation.pool)
    free = f"{_free_in_words(model, operation.kind, room)} are certainly free"
    taken = model.chunks.from_nothing.of_new_pools(operation) if change.is_first_of_pool else None
    if need_bytes <= room:
        return f": it takes at most {bytes_in_words(need_bytes)}, and {free}"
    gap = operation.alignment_bytes or 0  # where a block lay by chance then may be taken now
    if taken is not None and taken + gap <= room:
        return f": another new pool took {bytes_in_words(taken)}, and {free}"
    known = known_footprint(model, operation)
    if known is not None and known + gap <= room:
        return f": the same request was served when nothing was held, and {free}"
    least = _least_asked(change)
    if least and least + gap <= room:
        return f": the backing allocator was asked for {bytes_in_words(least)}, and {free}"
    if chunks := shared_chunks(model, operation):
        chunk = bytes_in_words(max(held.size_bytes for held in chunks))
        return (
            f" in one of {len(chunks):,} chunks of {chunk}, in which there are few blocks of that size and nothing else"
        )
    return ""


def _least_asked(change: Change) -> int:
    """Return the smallest of the requests to the backing allocator; 0 where there was none, or one was served."""
    seen = [ask.observation for ask in change.asks]
    is_refused = all(isinstance(each, BackingRefused) and each.kind is MemoryKind.DEVICE for each in seen)
    return min((each.size_bytes for each in seen), default=0) if is_refused else 0


def _free_in_words(model: Model, kind: MemoryKind, room_bytes: int) -> str:
    """Return what is free, next to the capacity that the context was opened with, unless it is all of that."""
    profile = model.profile
    capacity = profile.pinned_capacity_bytes if kind is MemoryKind.PINNED else profile.capacity_bytes
    whole = "" if room_bytes == capacity else f" of the {bytes_in_words(capacity)} as given in open"
    return f"{bytes_in_words(room_bytes)}{whole}"


def capacity_is_enforced(model: Model, change: Change) -> Iterator[Finding]:
    """No more is handed out than there is: than a pool's limit, and than the capacity where that is promised."""
    made = change.made
    if made is None or made.kind is not MemoryKind.DEVICE:
        return
    capacity = model.profile.capacity_bytes * model.profile.devices
    if model.promises(Promise.CAPACITY_LIMIT) and model.memory.live_bytes > capacity:
        live = sum(block.size_bytes for block in model.blocks.values() if block.kind is MemoryKind.DEVICE)
        if live > capacity:
            yield found(f"at most {bytes_in_words(capacity)} handed out, as given in open", bytes_in_words(live))
    limit = model.pools.get(made.pool) if made.pool is not None else None
    if limit is not None:
        live = sum(block.size_bytes for block in model.blocks.values() if block.pool == made.pool)
        if live > limit:
            expected = f"at most {bytes_in_words(limit)} handed out by pool '{made.pool}'"
            yield found(expected, bytes_in_words(live))


def foreign_errors_are_passed_on(model: Model, change: Change) -> Iterator[Finding]:
    """A call below that fails with anything else than out of memory fails the request: nothing was there to reclaim."""
    yield found("the error of the call to the backing allocator, at once", change.instead_of_error)


RULES: Final = (
    Rule(
        "A request that fits the memory that is certainly free is served.",
        Kind.MISSING_RETRY,
        request_fits_but_out_of_memory,
        MAKING_BLOCKS,
        promise=Promise.RECLAIMS_BEFORE_OOM,
    ),
    Rule(
        "An allocator hands out no more memory than the device has or the limit of a pool allows.",
        Kind.LIMIT,
        capacity_is_enforced,
        MAKING_BLOCKS,
        "made",
    ),
    Rule(
        "A request that meets a foreign error of the backing allocator fails with it, and does nothing about it.",
        Kind.SWALLOWED_ERROR,
        foreign_errors_are_passed_on,
        about="instead_of_error",
        promise=Promise.PASSES_FOREIGN_ERRORS,
    ),
)
