"""Rules of order: reuse, return, waits and completion reports, judged by happens-before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.rule import ASKING, Rule, found
from quiesce.model.findings import Finding
from quiesce.model.outcomes import Done
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words


def memory_is_reused_only_after_its_last_use(model: Model, change: Change) -> Iterator[Finding]:
    """Whoever uses memory again is ordered after all work that its earlier owner left on it."""
    for conflict in change.conflicts:
        earlier = conflict.earlier.slot
        stalled = conflict.stalled
        pending = (
            f"; stream '{stalled.name}' is stalled, so the work on '{earlier}' is certainly pending" if stalled else ""
        )
        yield found(
            f"work on '{conflict.user.slot}' ordered after the work on '{earlier}', which had this memory before",
            f"no order between them{pending}",
            conflict.earlier.made_by,
        )
        return


def memory_in_flight_is_not_released(model: Model, change: Change) -> Iterator[Finding]:
    """Memory is not released before the work that uses it is known to be complete."""
    for returned in change.returned:
        if returned.guard is not None:
            yield found(
                f"the work on freed '{returned.block.slot}' is complete before its memory is released",
                f"{bytes_in_words(returned.freed.size_bytes)} were released without waiting for it",
                returned.block.made_by,
            )
            return


def waits_name_live_streams(model: Model, change: Change) -> Iterator[Finding]:
    """Nobody waits for an event whose last stream was destroyed, where the runtime reads the stream to answer.

    HIP's does (upstream: kokkos#8006, ROCm#4670); CUDA keeps what it needs, so there such a wait is legal.
    """
    for wait in change.needless:
        waiter = "the host" if wait.waiter is None else f"stream '{wait.waiter}'"
        yield found(
            "only waits for events of streams that exist",
            f"{waiter} waited for event '{wait.event}', last recorded on a destroyed stream",
        )


def completion_is_not_reported_early(model: Model, change: Change) -> Iterator[Finding]:
    """A query does not answer yes while a stalled stream certainly holds the work back."""
    if change.early is not None and not change.conflicts:
        yield found(f"not ready: stream '{change.early.name}' is stalled", "done")


def known_completion_is_reported(model: Model, change: Change) -> Iterator[Finding]:
    """A query does not answer no once the host has waited for all that it asks about."""
    if change.certain_completion and not isinstance(change.outcome, Done):
        yield found("done: the host waited for the work", "not ready")


RULES: Final = (
    Rule(
        "Memory is used again only by work that is ordered after all work on the block that had it before.",
        Kind.RACE,
        memory_is_reused_only_after_its_last_use,
        about="conflicts",
    ),
    Rule(
        "Memory is released only after the work on it is complete.",
        Kind.EARLY_RELEASE,
        memory_in_flight_is_not_released,
        about="returned",
    ),
    Rule(
        "Nobody waits for an event of a destroyed stream (HIP).",
        Kind.DEAD_STREAM,
        waits_name_live_streams,
        about="needless",
    ),
    Rule(
        "A query does not report pending work as complete.",
        Kind.EARLY_COMPLETION,
        completion_is_not_reported_early,
        ASKING,
        "early",
    ),
    Rule(
        "A query reports work as complete once somebody has waited for it.",
        Kind.MISSED_COMPLETION,
        known_completion_is_reported,
        ASKING,
        "certain_completion",
    ),
)
