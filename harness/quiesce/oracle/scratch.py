"""Memory that work takes for itself: out of the pool, and freed on its stream behind it.

CUB's algorithms do so over ``rmm::exec_policy`` or ``cudaMallocAsync`` (``d_temp_storage``). It is seen in nothing but
what stays held. Launches are numbered, so that none has to look at all that is.
"""

from __future__ import annotations

from collections.abc import Iterator

from quiesce.oracle.clocks import StreamState, Timeline


class Scratch:
    """Where launches may have had memory of their own: in anything that was held by then."""

    def __init__(self) -> None:
        self.launches = 0
        """How many launches there were: the number of the last one."""
        self._launched_on: dict[Timeline, tuple[StreamState, int]] = {}
        self._used_on: dict[Timeline, int] = {}

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

    def is_used_on(self, timeline: Timeline, launches_before: int) -> bool:
        """Whether scratch memory of later launches may have had to do with a stream."""
        return self._used_on.get(timeline, 0) > launches_before

    def may_move(self, timeline: Timeline, waiter: Timeline) -> None:
        """Note that what had to do with a stream may be kept for one that was made to wait for it."""
        if timeline in self._used_on:
            self._used_on[waiter] = max(self._used_on[timeline], self._used_on.get(waiter, 0))
