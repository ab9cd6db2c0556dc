"""Memory that work takes for itself: out of the pool, and freed on its stream behind it.

CUB's algorithms do so over ``rmm::exec_policy`` or ``cudaMallocAsync`` (``d_temp_storage``). It is seen in nothing but
what stays held. Launches are numbered, so that none has to look at all that is.
"""

from __future__ import annotations

from collections.abc import Iterator

from quiesce.oracle.clocks import Clock, StreamState, Timeline, merge


class Scratch:
    """Where launches may have had memory of their own: in anything that was held by then."""

    def __init__(self) -> None:
        self.launches = 0
        """How many launches there were: the number of the last one."""
        self._launched_on: dict[Timeline, tuple[StreamState, int]] = {}
        self._used_on: dict[Timeline, int] = {}
        self._deferred: dict[Timeline, tuple[int, Clock]] = {}

    def launch(self, stream: StreamState) -> None:
        """Note that work was to go to ``stream``."""
        self.launches += 1
        self._launched_on[stream.timeline] = (stream, self.launches)
        self._used_on[stream.timeline] = self.launches

    def streams(self, launches_before: int) -> Iterator[StreamState]:
        """Yield the streams that had launches since: scratch memory goes back in their order."""
        for stream, launch in self._launched_on.values():
            if launch > launches_before:
                yield stream

    def is_freed_on(self, stream: StreamState) -> bool:
        """Whether scratch memory may go back in the order of a stream."""
        return stream.timeline in self._launched_on

    def defer(self, timeline: Timeline, behind: Clock) -> None:
        """Put what had to do with a stream behind an event that the library recorded there."""
        launch = self._used_on.get(timeline, 0)
        if launch:
            self._deferred[timeline] = (launch, _merged(self._deferred.get(timeline, (0, {}))[1], behind))

    def deferred(self, launches_before: int) -> Iterator[Clock]:
        """Yield what scratch memory of later launches was put behind."""
        for launch, clock in self._deferred.values():
            if launch > launches_before:
                yield clock

    def lose_stream(self, stream: StreamState, default: StreamState, behind: Clock) -> None:
        """Hand what goes back in the order of a stream that is going over to the default one, ``behind`` some work."""
        _, launched = self._launched_on.pop(stream.timeline, (stream, 0))
        _, deferred = self._deferred.pop(stream.timeline, (0, {}))
        if launched:
            _, number = self._launched_on.get(default.timeline, (default, 0))
            self._launched_on[default.timeline] = (default, max(launched, number))
        if stream.timeline in self._used_on:
            self.may_move(stream.timeline, default.timeline)
            self.defer(default.timeline, _merged(deferred, behind))
            del self._used_on[stream.timeline]

    def may_move(self, timeline: Timeline, waiter: Timeline) -> None:
        """Note that what had to do with a stream may be kept for one that was made to wait for it."""
        if timeline in self._used_on:
            self._used_on[waiter] = max(self._used_on[timeline], self._used_on.get(waiter, 0))


def _merged(clock: Clock, other: Clock) -> Clock:
    both = dict(clock)
    merge(both, other)
    return both
