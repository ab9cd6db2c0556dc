"""What one operation changed: the facts that rules read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quiesce.gauges import Readings
from quiesce.observations import BackingAllocated, BackingRefused, CopyEnqueued, EventWaited, Observation
from quiesce.operations import InjectedError, Operation, Slot
from quiesce.oracle.blocks import BlockState, Kept
from quiesce.oracle.clocks import Clock, StreamState
from quiesce.oracle.memory import Returned
from quiesce.outcomes import Outcome


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
    """Whether it is the first request of a pool that was made."""
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
