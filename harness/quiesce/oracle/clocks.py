"""Happens-before between streams and the host, by vector clocks.

Each stream has a timeline; work on it is numbered from 1. A clock says, for each timeline, up to which number work
is known to be complete or ordered before. What the host knows to be complete is left out of every other clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Timeline: TypeAlias = int
Clock: TypeAlias = dict[Timeline, int]


@dataclass(slots=True)
class StreamState:
    """What is known of one stream."""

    timeline: Timeline
    name: str
    device: int
    nonblocking: bool = False
    enqueued: int = 0
    clock: Clock = field(default_factory=dict)
    stalled_from: int | None = None
    """Work numbered above this is certainly pending while the stall holds."""


class HappensBefore:
    """The order of all work so far."""

    def __init__(self, *, legacy_default_stream: bool) -> None:
        self.host: Clock = {}
        self._legacy = legacy_default_stream
        self._streams: dict[Timeline, StreamState] = {}
        self._unfinished: dict[Timeline, StreamState] = {}
        self._stalled: dict[Timeline, StreamState] = {}
        self._next: Timeline = 0

    def new_stream(self, name: str, device: int, *, nonblocking: bool = False) -> StreamState:
        """Begin a timeline."""
        self._next += 1
        state = StreamState(self._next, name, device, nonblocking)
        self._streams[state.timeline] = state
        return state

    def enqueue(self, stream: StreamState) -> int:
        """Put work on a stream; return its number."""
        self._join_default(stream)
        stream.enqueued += 1
        stream.clock[stream.timeline] = stream.enqueued
        self._unfinished[stream.timeline] = stream
        return stream.enqueued

    def _join_default(self, stream: StreamState) -> None:
        if not self._legacy or stream.nonblocking:
            return
        for other in list(self._unfinished.values()):
            if other is stream or other.device != stream.device or other.nonblocking:
                continue
            if stream.name == "" or other.name == "":
                self.join(stream, other.clock)

    def snapshot(self, stream: StreamState) -> Clock:
        """Return what an event recorded on the stream now would stand for."""
        self._join_default(stream)
        return self.unfinished(stream.clock)

    def join(self, stream: StreamState, clock: Clock) -> None:
        """Order later work of ``stream`` behind ``clock``."""
        for timeline, number in self.unfinished(clock).items():
            if number > stream.clock.get(timeline, 0):
                stream.clock[timeline] = number

    def unfinished(self, clock: Clock) -> Clock:
        """Return the part of a clock that the host does not know to be complete."""
        return {timeline: number for timeline, number in clock.items() if number > self.host.get(timeline, 0)}

    def complete(self, clock: Clock) -> None:
        """Note that the host knows everything in ``clock`` to be complete; stalls that held it are over."""
        for timeline, number in clock.items():
            if number > self.host.get(timeline, 0):
                self.host[timeline] = number
                stream = self._streams[timeline]
                if stream.stalled_from is not None and number > stream.stalled_from:
                    self.release(stream)
                if number >= stream.enqueued:
                    self._unfinished.pop(timeline, None)
        for stream in self._unfinished.values():
            if len(stream.clock) > 1:
                stream.clock = self.unfinished(stream.clock)

    def complete_device(self, device: int) -> None:
        """Note that all work on a device is complete."""
        for stream in list(self._unfinished.values()):
            if stream.device == device:
                self.complete(dict(stream.clock))
        for stream in list(self._stalled.values()):
            if stream.device == device:
                self.release(stream)

    def stall(self, stream: StreamState) -> None:
        """Note that work enqueued on the stream from now on certainly stays pending."""
        if stream.stalled_from is None:
            stream.stalled_from = stream.enqueued
            self._stalled[stream.timeline] = stream

    def release(self, stream: StreamState) -> None:
        """Note that the stall is over."""
        stream.stalled_from = None
        self._stalled.pop(stream.timeline, None)

    def is_ordered(self, clock: Clock, before: StreamState | None) -> bool:
        """Whether everything in ``clock`` is done before later work of ``before`` (None: before the host goes on)."""
        known = before.clock if before is not None else {}
        return all(
            number <= self.host.get(timeline, 0) or number <= known.get(timeline, 0)
            for timeline, number in clock.items()
        )

    def certainly_pending(self, clock: Clock) -> StreamState | None:
        """Return a stalled stream that certainly holds some of ``clock`` back, or None."""
        for timeline, number in clock.items():
            stream = self._streams[timeline]
            if stream.stalled_from is not None and number > stream.stalled_from:
                return stream
        return None
