"""Guards: the events that a freed block waits for before anybody else may have its memory."""

from __future__ import annotations

from dataclasses import dataclass

from quiesce.reference.ledger import Ledger
from quiesce.reference.objects import Block, Event, Stream
from quiesce.reference.streams import Streams


@dataclass(slots=True, eq=False)
class Guard:
    """An event recorded on ``stream`` behind work that uses a freed block."""

    event: Event
    stream: Stream


def record_guards(block: Block, streams: Streams, ledger: Ledger) -> list[Guard]:
    """Record an event behind the work of every stream that uses ``block``; what is complete needs no guard."""
    guards = []
    for user in block.uses:
        ledger.step()
        if not user.alive:  # nothing can be recorded on a destroyed stream: wait for what it left
            streams.synchronize_device(user.device)
            continue
        event = streams.create_internal_event(user.device)
        streams.record(event, user)
        if not streams.captures.any_active and streams.is_complete(event):
            streams.destroy_event(event)
        else:
            guards.append(Guard(event, user))
    return guards
