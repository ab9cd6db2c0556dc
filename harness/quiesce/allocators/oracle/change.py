"""What one operation changed: the facts that rules read, and evidence of races where nobody reports waits.

Without an order ledger, memory that changes hands while earlier work may use it is suspicious and no more: the
allocator may have waited unseen. It is proven once the new owner is known to be done (the host, which touches
memory at once, always is) and a query *afterwards* answers that the earlier work is still pending, and nothing else
can be that somebody put behind it, nor on others where it is the default stream that is asked.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

from quiesce.allocators.oracle.blocks import BlockState, Kept
from quiesce.allocators.oracle.clocks import Clock, HappensBefore, StreamState, Timeline
from quiesce.allocators.oracle.memory import Returned
from quiesce.model.gauges import Readings
from quiesce.model.observations import BackingAllocated, BackingRefused, CopyEnqueued, EventWaited, Observation
from quiesce.model.operations import InjectedError, Operation, Slot
from quiesce.model.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Conflict:
    """A use of a block that is not ordered behind earlier work on the same memory."""

    user: BlockState
    earlier: BlockState
    stalled: StreamState | None
    """The stream that certainly holds the earlier work back, if one is known."""


class Ask(NamedTuple):
    """One request to the backing allocator, and how many bytes were held when it was made, by anybody."""

    observation: BackingAllocated | BackingRefused
    held_bytes: int


class Piece(NamedTuple):
    """A told copy, by its place among the observations, that others of the same request come behind."""

    place: int
    clock: Clock


class OwnCopy(NamedTuple):
    """A told copy on a stream of the library's own, its place among the observations, and the work that it is there."""

    place: int
    observation: CopyEnqueued
    stream: StreamState
    number: int


@dataclass(slots=True)
class Change:
    """What one operation changed, and what stood out."""

    operation: Operation
    outcome: Outcome
    observations: tuple[Observation, ...]
    before: Readings
    after: Readings
    origin: object
    """What says, as text, where the operation comes from."""
    armed: InjectedError | None = None
    """What an injected failure may have looked like while the operation ran; None: none was armed."""
    made: BlockState | None = None
    freed: BlockState | None = None
    overlapped: tuple[BlockState, ...] = ()
    asks: tuple[Ask, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    returned: tuple[Returned, ...] = ()
    pieces: tuple[Piece, ...] = ()
    """What was staged piece by piece, but for the last."""
    own_copies: tuple[OwnCopy, ...] = ()
    """What was staged on streams of the library's own."""
    taken_from_graphs: tuple[Kept, ...] = ()
    """Memory of graphs that are there, which was handed out or was released."""
    needless: tuple[EventWaited, ...] = ()
    """Waits for events of destroyed streams."""
    orphan: Slot | None = None
    """The name of a destroyed pool's memory of which the last block is gone."""
    instead_of_error: str = ""
    """What a request did instead of failing at once, although a call below certainly failed with a foreign error."""
    is_first_of_pool: bool = False
    """Whether it is the first request of its pool, or of the default ones."""
    early: StreamState | None = None
    """A stalled stream that certainly holds back what was just reported complete."""
    certain_completion: bool = False
    """Whether the host knew already that what was just reported unfinished is complete."""

    @property
    def stands_out(self) -> bool:
        """Whether there is any fact that a rule may be about; most operations leave none."""
        return bool(
            self.made is not None
            or self.asks
            or self.returned
            or self.conflicts
            or self.overlapped
            or self.taken_from_graphs
            or self.needless
            or self.instead_of_error
            or self.early is not None
            or self.certain_completion
        )


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
