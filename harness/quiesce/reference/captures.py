"""Stream capture: which streams record into a graph, which calls that forbids, and what the graph holds.

Rules and codes are those that CUDA's and HIP's runtime documentation share ("Stream Management",
``cudaStreamBeginCapture``, ``cudaThreadExchangeStreamCaptureMode``, ``hipStreamBeginCapture``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quiesce.operations import CaptureMode
from quiesce.outcomes import (
    CAPTURE_INVALIDATED,
    CAPTURE_ISOLATION,
    CAPTURE_MERGE,
    CAPTURE_UNJOINED,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    ILLEGAL_STATE,
)
from quiesce.reference.calls import CallRejected

if TYPE_CHECKING:
    from quiesce.reference.blocks import Block
    from quiesce.reference.streams import Event, Stream


@dataclass(slots=True, eq=False)
class Capture:
    """A capture in progress: where it began, the streams that joined, and the work recorded so far."""

    origin: Stream
    mode: CaptureMode
    streams: set[Stream] = field(default_factory=set)
    unjoined: set[Stream] = field(default_factory=set)
    launches: list[tuple[Block, ...]] = field(default_factory=list)
    invalid: bool = False


@dataclass(slots=True, eq=False)
class Graph:
    """A captured graph: the blocks that each of its launches uses, in order."""

    name: str
    launches: tuple[tuple[Block, ...], ...]


class Captures:
    """All captures in progress."""

    def __init__(self) -> None:
        self.active: dict[Stream, Capture] = {}  # by origin
        self._relaxed = 0

    @property
    def any_active(self) -> bool:
        """Whether some stream is being captured."""
        return bool(self.active)

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Exchange the thread's capture mode for relaxed, as libraries do around their own unsafe calls."""
        self._relaxed += 1
        try:
            yield
        finally:
            self._relaxed -= 1

    def begin(self, stream: Stream, mode: CaptureMode) -> None:
        """Begin capturing ``stream``."""
        if stream.is_default:
            raise CallRejected(CAPTURE_UNSUPPORTED)
        if stream.capture is not None:
            raise CallRejected(ILLEGAL_STATE)
        capture = Capture(stream, mode, {stream})
        stream.capture = capture
        self.active[stream] = capture

    def end(self, stream: Stream, name: str) -> Graph:
        """End the capture that began on ``stream``; the graph is called ``name``."""
        capture = stream.capture
        if capture is None or capture.origin is not stream:
            raise CallRejected(ILLEGAL_STATE)
        self._close(capture)
        if capture.invalid:
            raise CallRejected(CAPTURE_INVALIDATED)
        if capture.unjoined:
            raise CallRejected(CAPTURE_UNJOINED)
        return Graph(name, tuple(capture.launches))

    def abandon(self, stream: Stream) -> None:
        """Give a capture up because its stream is being destroyed."""
        if stream.capture is not None:
            self._close(stream.capture)

    def abandon_all(self) -> None:
        """Give every capture up because the context is being closed."""
        for capture in list(self.active.values()):
            self._close(capture)

    def _close(self, capture: Capture) -> None:
        del self.active[capture.origin]
        for stream in capture.streams:
            stream.capture = None

    def forbid_unsafe_call(self) -> None:
        """Refuse a potentially unsafe call (allocation, event query) unless every capture is relaxed."""
        if self._relaxed:
            return
        strict = [capture for capture in self.active.values() if capture.mode is not CaptureMode.RELAXED]
        for capture in strict:
            capture.invalid = True
        if strict:
            raise CallRejected(CAPTURE_UNSUPPORTED)

    def forbid_on(self, stream: Stream) -> None:
        """Refuse a query or synchronisation of a stream that is being captured; the capture is invalid from then on."""
        if stream.capture is not None:
            stream.capture.invalid = True
            raise CallRejected(CAPTURE_UNSUPPORTED)

    def forbid_captured(self, event: Event) -> None:
        """Refuse a query or synchronisation of an event last recorded in a capture that is still going on."""
        if event.capture is not None:
            if event.capture.origin in self.active:
                event.capture.invalid = True
            raise CallRejected(CAPTURED_EVENT)

    def wait(self, stream: Stream, event: Event) -> None:
        """Make ``stream`` depend on ``event`` where a capture is concerned: it joins the event's capture."""
        capture = event.capture
        if capture is None:
            if stream.capture is not None and event.record is not None and not event.record.complete:
                stream.capture.invalid = True
                raise CallRejected(CAPTURE_ISOLATION)
            return
        if stream.capture is not None and stream.capture is not capture:
            stream.capture.invalid = capture.invalid = True
            raise CallRejected(CAPTURE_MERGE)
        if capture.origin not in self.active:
            raise CallRejected(CAPTURED_EVENT)
        if stream is capture.origin:
            capture.unjoined.discard(event.last_stream)
        elif stream not in capture.streams:
            capture.streams.add(stream)
            capture.unjoined.add(stream)
            stream.capture = capture
