"""Happens-before between streams and the host, by vector clocks.

Each stream has a timeline; work on it is numbered from 1. A clock says, for each timeline, up to which number work
is known to be complete or ordered before. What the host knows to be complete is left out of every other clock.

Beside its work, a stream has *marks*: stalls, records, waits and frees, which may or may not hold it up. They are
numbered on a timeline of their own: a mark excuses a backend that says "not yet", and never accuses one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Timeline: TypeAlias = int
Clock: TypeAlias = dict[Timeline, int]


def merge(clock: Clock, other: Clock) -> None:
    """Raise every entry of ``clock`` to at least that of ``other``."""
    if not other:
        return
    for timeline, number in other.items():
        if number > clock.get(timeline, 0):
            clock[timeline] = number


@dataclass(slots=True)
class StreamState:
    """What is known of one stream. ``marks`` is the timeline of its marks, of which ``marked`` were made."""

    timeline: Timeline
    marks: Timeline
    name: str
    device: int
    nonblocking: bool = False
    enqueued: int = 0
    marked: int = 0
    marked_for: object = None
    """The block for whose free the last marks were made; None where it was for anything else."""
    marked_from: int = 0
    """The first of those marks."""
    clock: Clock = field(default_factory=dict)
    certain: Clock = field(default_factory=dict)
    """What its work certainly comes behind: an action that is no work may take part in the implicit order or not."""
    stalled_from: int | None = None
    """Work numbered above this is certainly pending while the stall holds."""
    stall_mark: int | None = None
    """The mark of the first stall that nobody is known to have ended; a later one may be no other."""
    stall_work: int = 0
    """Work numbered above this is behind that stall."""
    disturbed_behind: int | None = None
    """Behind the work of this number somebody may have made the stream wait unseen."""
    disturbed_by: object = None
    """The block whose free alone did that; None where anything else may have."""
    disturbed_beyond: bool = False
    """Whether that may also wait for what the stream's work does not come behind."""
    disturbed_at: int = 0
    """How many calls of a library there had been by then."""


class HappensBefore:
    """The order of all work so far."""

    def __init__(self, *, legacy_default_stream: bool) -> None:
        self.host: Clock = {}
        self.surely: Clock = {}
        """The part of ``host`` that follows from no more than what the sequence waited for itself."""
        self.calls = 0
        """How many calls there were in which a library may have waited, or put something on a stream, unseen."""
        self._legacy = legacy_default_stream
        self._streams: dict[Timeline, StreamState] = {}
        self._unfinished: dict[Timeline, StreamState] = {}
        self._stalled: dict[Timeline, StreamState] = {}
        self._next: Timeline = 0

    def new_stream(self, name: str, device: int, *, nonblocking: bool = False) -> StreamState:
        """Begin a timeline, and one for the marks."""
        self._next += 2
        state = StreamState(self._next - 1, self._next, name, device, nonblocking)
        self._streams[state.timeline] = self._streams[state.marks] = state
        return state

    def forget(self, stream: StreamState) -> bool:
        """Forget a stream that gets no more work; say whether that could be: all its work must be complete."""
        if stream.timeline in self._unfinished or stream.timeline in self._stalled:
            return False
        for timeline in (stream.timeline, stream.marks):
            self._streams.pop(timeline, None)
        return True

    # -- what streams do -------------------------------------------------------------------------------------------

    def enqueue(self, stream: StreamState) -> int:
        """Put work on a stream; return its number."""
        stream.clock = self._behind_default(stream)
        stream.enqueued += 1
        stream.clock[stream.timeline] = stream.certain[stream.timeline] = stream.enqueued
        for other in self._implicitly_before(stream):
            merge(stream.certain, self._uncertain(other.certain))
        self._unfinished[stream.timeline] = stream
        return stream.enqueued

    def mark(self, stream: StreamState, freed: object = None) -> int:
        """Put something on a stream that may hold it up, as for a free; return its number among the marks."""
        stream.marked += 1
        if freed is None or stream.marked_for is not freed:
            stream.marked_for, stream.marked_from = freed, stream.marked
        stream.clock[stream.marks] = stream.certain[stream.marks] = stream.marked
        self._unfinished[stream.timeline] = stream
        return stream.marked

    def _behind_default(self, stream: StreamState) -> Clock:
        """Return the stream's clock behind what the order of the legacy default stream puts before its next action."""
        clock = stream.clock
        for other in self._implicitly_before(stream):
            clock = dict(clock) if clock is stream.clock else clock
            merge(clock, self.unfinished(other.clock))
        return clock

    def _implicitly_before(self, stream: StreamState) -> list[StreamState]:
        """Return the busy streams that the next action on a stream waits for by the legacy default stream's order."""
        if not self._legacy or stream.nonblocking or not self._unfinished:
            return []
        return [
            other
            for other in self._unfinished.values()
            if other is not stream
            and other.device == stream.device
            and not other.nonblocking
            and (stream.name == "" or other.name == "")
        ]

    def snapshot(self, stream: StreamState) -> Clock:
        """Return what an action on the stream would be ordered behind now."""
        return self.unfinished(self._behind_default(stream))

    def record(self, stream: StreamState) -> Clock:
        """Return what an event stands for that is recorded on the stream now: to the default stream, an action."""
        self._act(stream)
        self.disturb(stream)
        return self.unfinished(stream.clock)

    def freed_behind(self, stream: StreamState | None, uses: Clock, freed: object = None) -> Clock:
        """Return what a free on ``stream`` of a block with these uses may be ordered behind.

        An event recorded now comes behind all that a stream was given since; where it may be stalled, behind that.
        """
        behind: Clock = {}
        if not self._unfinished and not self._stalled:
            return behind
        streams = [stream] if stream is not None else []
        for state in {id(each): each for each in (*streams, *self.users(uses))}.values():
            if state.stall_mark is not None:
                self.mark(state, freed)
            merge(behind, self.snapshot(state))
        return behind

    def users(self, uses: Clock) -> list[StreamState]:
        """Return the streams of a block's uses."""
        return [self._streams[user] for user in uses]

    def doubt_idleness(self, stream: StreamState, uses: Clock, freed: object) -> None:
        """Note that the free of a block may have put something on a stream and on those of ``uses``: no work."""
        states = {id(each): each for each in (stream, *self.users(uses))}.values()
        # By the legacy order a mark may wait for somebody else's work; that of the same free's marks does not count.
        beyond = [any(self._ahead(state, self._implicitly_before(state))) for state in states]
        for state, is_beyond in zip(states, beyond, strict=True):
            self._act(state, freed)
            self.disturb(state, freed, beyond=is_beyond)

    def encompassed(self, stream: StreamState) -> Clock:
        """Return the unfinished work that a query or synchronisation of a stream is about.

        The legacy default stream stands for every blocking one; a blocking stream stands for its own work and not for
        what the default stream was given since (``hipStreamSynchronize``; CUDA C++ Programming Guide, "Prohibited and
        Unhandled Operations").
        """
        return self.snapshot(stream) if stream.name == "" else self.unfinished(stream.clock)

    def join(self, stream: StreamState, clock: Clock) -> None:
        """Order later work of ``stream`` behind ``clock``."""
        merge(stream.clock, self.unfinished(clock))

    def wait(self, stream: StreamState, clock: Clock, certain: Clock | None = None) -> None:
        """Make later work of ``stream`` wait for ``clock``, and certainly for ``certain``.

        To the legacy default stream's implicit order a wait is an action like any other (CUDA Runtime API, "Stream
        synchronization behavior").
        """
        self._act(stream)
        self.disturb(stream)
        self.join(stream, clock)
        merge(stream.certain, self._uncertain(certain or {}))

    def _act(self, stream: StreamState, freed: object = None) -> None:
        """Enter an action that is no work: a device comes to it in its own time, by the default stream's order."""
        if self._legacy and not stream.nonblocking:
            stream.clock = self._behind_default(stream)
        self.mark(stream, freed)

    def _ahead(self, stream: StreamState, others: Iterable[StreamState]) -> Iterator[Timeline]:
        """Yield where others have something to do that the stream does not come behind."""
        for other in others:
            for timeline, number in self.unfinished(other.clock).items():
                if number > stream.clock.get(timeline, 0):
                    yield timeline

    # -- what the host knows ---------------------------------------------------------------------------------------

    def _uncertain(self, clock: Clock) -> Clock:
        return {timeline: number for timeline, number in clock.items() if number > self.surely.get(timeline, 0)}

    def is_surely_complete(self, *clocks: Clock) -> bool:
        """Whether the sequence itself has waited for everything in the clocks."""
        return not any(self._uncertain(clock) for clock in clocks)

    def may_be_busy(self, stream: StreamState) -> bool:
        """Whether something put on a stream now may have to wait: the sequence has not waited for what is before it."""
        own = {stream.timeline: stream.enqueued, stream.marks: stream.marked}
        return not self.is_surely_complete(own, self._behind_default(stream))

    def note_sure(self, certain: Clock) -> None:
        """Note that the sequence itself has waited for ``certain``."""
        merge(self.surely, certain)

    def unfinished(self, clock: Clock) -> Clock:
        """Return the part of a clock that the host does not know to be complete."""
        if not clock or not self._unfinished:
            return {}
        host = self.host
        return {timeline: number for timeline, number in clock.items() if number > host.get(timeline, 0)}

    def work(self, clock: Clock) -> Clock:
        """Return the unfinished work in a clock, without marks."""
        if not clock or not self._unfinished:
            return {}
        return {
            timeline: number
            for timeline, number in self.unfinished(clock).items()
            if self._streams[timeline].timeline == timeline
        }

    def complete(self, clock: Clock, *, asked: StreamState | None = None) -> None:
        """Note that the host knows everything in ``clock`` to be complete: it waited, so stalls that held it are over.

        Where it only asked, about the stream ``asked``, that says little of marks: of those of the same stream,
        if it is not stalled, and of no others.
        """
        for timeline, number in clock.items():
            stream = self._streams.get(timeline)
            if stream is None:
                continue  # it was complete when it was forgotten
            is_mark = timeline == stream.marks
            if is_mark and asked is not None and (stream is not asked or stream.stall_mark is not None):
                continue
            if number <= self.host.get(timeline, 0):
                continue
            self.host[timeline] = number
            if is_mark and stream.stall_mark is not None and number >= stream.stall_mark:
                self.doubt_stall(stream)  # over, if it holds up what comes behind it on another stream
            elif not is_mark and stream.stalled_from is not None and number > stream.stalled_from:
                self.release(stream)
            elif not is_mark and stream.stall_mark is not None and number > stream.stall_work:
                self.doubt_stall(stream)  # if the last stall was none, because this one held
            if stream.enqueued <= self.host.get(stream.timeline, 0) and stream.marked <= self.host.get(stream.marks, 0):
                self._unfinished.pop(stream.timeline, None)
        for stream in self._unfinished.values():
            if len(stream.clock) > 1:
                stream.clock = self.unfinished(stream.clock)

    def complete_device(self, device: int) -> None:
        """Note that all work on a device is complete."""
        for stream in self._streams.values():
            if stream.device == device:
                self.note_sure(stream.certain)
        for stream in list(self._unfinished.values()):
            if stream.device == device:
                self.complete(dict(stream.clock))
        for stream in list(self._stalled.values()):
            if stream.device == device:
                self.release(stream)

    # -- stalls ----------------------------------------------------------------------------------------------------

    def stall(self, stream: StreamState) -> None:
        """Note that work enqueued on the stream from now on certainly stays pending.

        A stall may count as work, as a kernel that spins does: then it comes behind the default stream, and a second
        one outlives the first.
        """
        stream.clock = self._behind_default(stream)
        mark = self.mark(stream)
        if stream.stalled_from is None:
            stream.stalled_from = stream.enqueued
            if stream.stall_mark is None:
                stream.stall_mark, stream.stall_work = mark, stream.enqueued
            self._stalled[stream.timeline] = stream
        self.disturb(stream)

    def disturb(self, stream: StreamState, freed: object = None, *, beyond: bool = False) -> None:
        """Note that the stream may wait, unseen, for something else than its own work; ``freed``: for a free's mark."""
        is_first = stream.disturbed_behind != stream.enqueued
        stream.disturbed_by = freed if is_first or stream.disturbed_by is freed else None
        stream.disturbed_beyond = beyond or (stream.disturbed_beyond and not is_first)
        stream.disturbed_behind, stream.disturbed_at = stream.enqueued, self.calls

    def release(self, stream: StreamState) -> None:
        """Note that the stall is over."""
        stream.stalled_from = stream.stall_mark = None
        self._stalled.pop(stream.timeline, None)

    def doubt_stall(self, stream: StreamState) -> None:
        """Note that the stall may be over: it is not certain to hold any more."""
        stream.stalled_from = None

    def doubt_stalls(self) -> None:
        """Note that somebody may have waited unseen: no stall is certain to hold any more."""
        for stream in self._stalled.values():
            stream.stalled_from = None

    # -- judgements ------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether some work is not known to be complete."""
        return bool(self._unfinished)

    def is_alone(self, stream: StreamState, freed: object) -> bool:
        """Whether nothing on others can have a stream answer that it is not idle, but marks that were made for a free.

        The default stream may answer for every stream of its device.
        """
        if stream.name != "":
            return True
        others = (each for each in self._unfinished.values() if each.device == stream.device)
        for timeline in self._ahead(stream, others):
            other = self._streams[timeline]
            if timeline != other.marks or other.marked_for is not freed:
                return False
            if stream.clock.get(timeline, 0) < other.marked_from - 1:
                return False
        return True

    def is_ordered(self, clock: Clock, before: StreamState | None) -> bool:
        """Whether everything in ``clock`` is done before later work of ``before`` (None: before the host goes on)."""
        known = self._behind_default(before) if before is not None else {}
        return all(
            number <= self.host.get(timeline, 0) or number <= known.get(timeline, 0)
            for timeline, number in clock.items()
        )

    def certainly_pending(self, clock: Clock) -> StreamState | None:
        """Return a stalled stream that certainly holds some of ``clock`` back, or None."""
        for timeline, number in clock.items():
            stream = self._streams[timeline]
            if timeline == stream.timeline and stream.stalled_from is not None and number > stream.stalled_from:
                return stream
        return None
