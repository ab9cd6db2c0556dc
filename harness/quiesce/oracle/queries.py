"""What the answer to a query says: what is complete, and whether somebody answered too early or too late."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.oracle.change import Change, Conflict
from quiesce.oracle.clocks import StreamState
from quiesce.oracle.facts import Facts
from quiesce.outcomes import NOT_READY, Done, Outcome, Rejected


def judge_query(facts: Facts, operation: ops.QueryStream | ops.QueryEvent, outcome: Outcome, change: Change) -> None:
    """Enter the answer to a query, and note on ``change`` where it contradicts what is certain."""
    stream: StreamState | None = None
    if isinstance(operation, ops.QueryStream):
        stream = asked = facts.stream(operation.slot)
        clock = dict(stream.clock) if stream is not None else {}
        certain = stream.certain if stream is not None else {}
    else:
        event = facts.events.get(operation.slot)
        asked = event.stream if event is not None else None
        clock = event.clock if event is not None and event.capture is None else {}
        certain = event.certain if event is not None and event.capture is None else {}
    if isinstance(outcome, Done):
        change.early = facts.order.certainly_pending(certain)
        if asked is not None and asked.stall_mark is None:
            facts.order.note_sure(certain)
        if asked is not None:
            facts.order.complete(clock, asked=asked)
    elif outcome == Rejected(NOT_READY):
        held_back = (
            facts.waits_unseen or facts.completion_in_doubt or (stream is not None and stream.stall_mark is not None)
        )
        about = facts.order.encompassed(stream) if stream is not None else clock
        change.certain_completion = not held_back and facts.order.is_surely_complete(about, certain)
        if stream is not None:
            _believe(facts, stream, change)


def _believe(facts: Facts, stream: StreamState, change: Change) -> None:
    for suspect in facts.evidence.proven_by_pending(stream):
        if isinstance(suspect.subject, Conflict):
            change.conflicts += (Conflict(suspect.subject.user, suspect.subject.earlier, stream),)
        else:
            change.returned += (suspect.subject,)
