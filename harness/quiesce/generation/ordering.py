"""The order between streams that a sequence has asked for, point by point.

Every allocation, use and free is a point of its stream. This is the sequence's own account of what it may rely on,
kept apart from the oracle's: it counts allocations and frees, which a stream-ordered allocator orders as work, and it
never learns anything from an answer.
"""

from __future__ import annotations

from quiesce.generation.things import Clock, Stream


class Order:
    """All streams of one context; ``legacy`` is whether the default stream and blocking ones wait for each other."""

    def __init__(self, devices: int, *, legacy: bool) -> None:
        self.defaults = tuple(Stream(None, device) for device in range(devices))
        self.streams: list[Stream] = list(self.defaults)
        self.known: Clock = {}
        """What the host has waited for."""
        self._legacy = legacy

    def add(self, stream: Stream) -> Stream:
        """Enter a stream."""
        self.streams.append(stream)
        return stream

    def advance(self, stream: Stream) -> int:
        """Pass a point of the stream and return its number."""
        stream.passed += 1
        return stream.passed

    def snapshot(self, stream: Stream) -> Clock:
        """Return what an event recorded on the stream now stands for."""
        return {**stream.behind, stream: stream.passed}

    def join(self, stream: Stream, clock: Clock) -> None:
        """Put later points of the stream behind ``clock``."""
        raise_to(stream.behind, clock)

    def complete(self, clock: Clock) -> None:
        """Note that the host has waited for ``clock``."""
        raise_to(self.known, clock)

    def complete_device(self, device: int) -> None:
        """Note that the host has waited for everything on a device, and for all that this waits for."""
        for stream in self.streams:
            if stream.device == device:
                raise_to(self.known, stream.behind)
                self.known[stream] = stream.passed

    def is_behind(self, stream: Stream | None, other: Stream, point: int, *, implicitly: bool) -> bool:
        """Whether later points of ``stream`` (None: the host) come behind ``point`` of ``other``.

        ``implicitly`` is whether the legacy default stream's order counts. It holds for work, not for a free, and it
        is never followed from stream to stream: work in between may be skipped because an allocation failed.
        """
        if stream is other or point <= self.known.get(other, 0):
            return True
        if stream is None:
            return False
        if point <= stream.behind.get(other, 0):
            return True
        if not (implicitly and self._legacy and other.alive) or stream.nonblocking or other.nonblocking:
            return False
        default = self.defaults[stream.device]
        return stream.device == other.device and default in (stream, other)

    def are_behind(self, stream: Stream | None, clock: Clock) -> bool:
        """Whether later points of ``stream`` (None: the host) come behind everything in ``clock`` without its help."""
        return all(self.is_behind(stream, other, point, implicitly=False) for other, point in clock.items())


def raise_to(clock: Clock, other: Clock) -> None:
    """Raise ``clock`` to ``other`` wherever that is further on."""
    for stream, point in other.items():
        if point > clock.get(stream, 0):
            clock[stream] = point
