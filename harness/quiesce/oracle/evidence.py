"""Evidence of races where nobody reports what an allocator waits for.

Without an order ledger, memory that changes hands while earlier work may use it is suspicious and no more: the
allocator may have waited unseen. It is proven once the new owner is known to be done (the host, which touches
memory at once, always is) and a query *afterwards* answers that the earlier work is still pending, and nothing else
can be that somebody put behind it, nor on others where it is the default stream that is asked.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from quiesce.oracle.blocks import BlockState
from quiesce.oracle.change import Conflict
from quiesce.oracle.clocks import Clock, HappensBefore, StreamState, Timeline
from quiesce.oracle.memory import Returned

_SUSPECTS_MAX: Final = 256
"""So many suspects are remembered for each stream; the oldest are forgotten."""
_CALLS_MAX: Final = 2
"""The free itself, and the call that took its memory. Whatever an allocator recorded for that block was waited for by
then; what it recorded in another call, a device may still have to come to."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Memory that changed hands, the work that should have been waited for, and the work that used it next."""

    subject: Conflict | Returned
    guard: Clock
    user: tuple[Timeline, int] | None = None
    """The later work; None where the host, or the backing allocator, had the memory at once."""

    @property
    def earlier(self) -> BlockState:
        """The block whose work should have been waited for."""
        return self.subject.earlier if isinstance(self.subject, Conflict) else self.subject.block


class Evidence:
    """All suspects, by the stream whose work may still be pending."""

    def __init__(self, order: HappensBefore) -> None:
        self._order = order
        self._suspects: dict[Timeline, deque[Suspect]] = {}

    def suspect(self, suspect: Suspect) -> None:
        """Remember a suspect."""
        for timeline in suspect.guard:
            self._suspects.setdefault(timeline, deque(maxlen=_SUSPECTS_MAX)).append(suspect)

    def proven_by_pending(self, stream: StreamState) -> list[Suspect]:
        """Return what is proven by the news that ``stream`` is not idle: its last work is pending."""
        host = self._order.host
        proven: list[Suspect] = []
        kept: deque[Suspect] = deque(maxlen=_SUSPECTS_MAX)
        for suspect in self._suspects.pop(stream.timeline, ()):
            if suspect.guard[stream.timeline] != stream.enqueued:
                continue
            is_later_done = suspect.user is None or suspect.user[1] <= host.get(suspect.user[0], 0)
            if is_later_done and self._is_held_by_work(stream, suspect.earlier):
                proven.append(suspect)
            else:
                kept.append(suspect)
        if kept:
            self._suspects[stream.timeline] = kept
        return proven

    def _is_held_by_work(self, stream: StreamState, freed: BlockState) -> bool:
        """Whether its last work alone can hold the stream, but for what was put on streams for the free of a block."""
        is_undisturbed = stream.disturbed_behind != stream.enqueued or (
            stream.disturbed_by is freed
            and not stream.disturbed_beyond
            and self._order.calls <= stream.disturbed_at + _CALLS_MAX
        )
        return is_undisturbed and self._order.is_alone(stream, freed)
