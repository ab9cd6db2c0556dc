"""Stream capture: which streams record into a graph, which calls that forbids, and what the graph holds.

Rules and codes are those that CUDA and HIP share: CUDA C++ Programming Guide, "Creating a Graph Using
Stream Capture", with its "Prohibited and Unhandled Operations"; ``cudaThreadExchangeStreamCaptureMode``; the codes'
own descriptions, which HIP repeats ("Stream Capture Errors").
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from quiesce.allocators.reference.ledger import CallRejected
from quiesce.allocators.reference.objects import Capture, Event, Graph, Stream
from quiesce.model.operations import CaptureMode
from quiesce.model.outcomes import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_ISOLATION,
    CAPTURE_MERGE,
    CAPTURE_UNJOINED,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    ILLEGAL_STATE,
    INVALID_VALUE,
)


class _Depth:
    """How many callers further out have exchanged the mode. It is entered around every call below."""

    def __init__(self) -> None:
        self.value = 0

    def __enter__(self) -> None:
        self.value += 1

    def __exit__(self, *_: object) -> None:
        self.value -= 1


class Captures:
    """All captures in progress."""

    capture_type: type[Capture] = Capture

    def __init__(self) -> None:
        self.active: dict[Stream, Capture] = {}  # by origin
        self.when_over: dict[object, Callable[[], None]] = {}
        """By owner: what to do each time that no capture is going on any more."""
        self._relaxed = _Depth()

    @property
    def any_active(self) -> bool:
        """Whether some stream is being captured."""
        return bool(self.active)

    def relaxed(self) -> AbstractContextManager[None]:
        """Exchange the thread's capture mode for relaxed, as libraries do around their own unsafe calls."""
        return self._relaxed

    def begin(self, stream: Stream, mode: CaptureMode) -> None:
        """Begin capturing ``stream``."""
        if stream.is_default:
            raise CallRejected(CAPTURE_UNSUPPORTED)
        if stream.capture is not None:
            raise CallRejected(ILLEGAL_STATE)
        capture = self.capture_type(stream, mode, {stream})
        stream.capture = capture
        self.active[stream] = capture

    def end(self, stream: Stream, name: str) -> Graph:
        """End the capture that began on ``stream``; the graph is called ``name``.

        However it ends, every stream leaves capture mode ("out of capture mode, but will also return an error").
        """
        capture = stream.capture
        if capture is None or capture.origin is not stream:
            raise CallRejected(ILLEGAL_STATE)
        self._close(capture)
        if capture.invalid:
            self.give_up(capture)
            raise CallRejected(CAPTURE_INVALIDATED)
        if not self.is_joined(capture):
            self.give_up(capture)
            raise CallRejected(CAPTURE_UNJOINED)
        return Graph(name, tuple(capture.launches), capture)

    def give_up(self, capture: Capture) -> None:
        """Give back what was kept for a graph that never came to be."""
        capture.give_back()

    def is_joined(self, capture: Capture) -> bool:
        """Whether all captured work was joined to the origin (``cudaErrorStreamCaptureUnjoined``)."""
        return capture.is_joined

    def abandon(self, stream: Stream) -> None:
        """Give a capture up because its stream is being destroyed."""
        capture = stream.capture
        if capture is not None:
            self._close(capture)
            self.give_up(capture)

    def abandon_all(self) -> None:
        """Give every capture up because the context is being closed."""
        for capture in list(self.active.values()):
            self._close(capture)
            self.give_up(capture)

    def _close(self, capture: Capture) -> None:
        del self.active[capture.origin]
        for stream in capture.streams:
            stream.capture = None
        if not self.active:
            for settle in list(self.when_over.values()):
                settle()

    def on_device(self, device: int) -> list[Capture]:
        """Return the captures that a stream of ``device`` takes part in."""
        return [capture for capture in self.active.values() if any(s.device == device for s in capture.streams)]

    def block_default_of(self, device: int) -> list[Capture]:
        """Return the captures that make the legacy default stream of ``device`` unusable: those of blocking streams."""
        return [
            capture
            for capture in self.active.values()
            if any(s.device == device and not s.nonblocking for s in capture.streams)
        ]

    def forbid_default_of(self, device: int) -> None:
        """Refuse use of a legacy default stream that would depend on a capture (``cudaErrorStreamCaptureImplicit``)."""
        blocking = self.block_default_of(device)
        for capture in blocking:
            capture.invalid = True
        if blocking:
            raise CallRejected(CAPTURE_IMPLICIT)

    def forbid_unsafe_call(self) -> None:
        """Refuse a potentially unsafe call (allocation, event query) unless every capture is relaxed.

        A thread with "an ongoing capture sequence that was not initiated with" the relaxed mode "is prohibited from
        potentially unsafe API calls" unless its own mode is relaxed (``cudaThreadExchangeStreamCaptureMode``).
        """
        if self._relaxed.value or not self.active:
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
        """Refuse a query or synchronisation of an event last recorded in a capture (``cudaErrorCapturedEvent``).

        Once the capture is over, CUDA 13's driver answers that the value is invalid.
        """
        if event.capture is not None:
            if self.active.get(event.capture.origin) is not event.capture:
                raise CallRejected(INVALID_VALUE)
            event.capture.invalid = True
            raise CallRejected(CAPTURED_EVENT)

    def wait(self, stream: Stream, event: Event) -> None:
        """Make ``stream`` depend on ``event`` where a capture is concerned: it joins the event's capture."""
        if stream.capture is not None:
            stream.capture.require_valid()
        if event.capture is None:
            if stream.capture is not None and event.record is not None:
                stream.capture.invalid = True
                raise CallRejected(CAPTURE_ISOLATION)
            return
        self._join(stream, event, event.capture)

    def _join(self, stream: Stream, event: Event, capture: Capture) -> None:
        if self.active.get(capture.origin) is not capture:
            raise CallRejected(INVALID_VALUE)
        if stream.capture not in (None, capture):
            assert stream.capture is not None
            stream.capture.invalid = capture.invalid = True
            raise CallRejected(CAPTURE_MERGE)
        if capture.invalid:  # "an idle waiter on an invalidated capture" (ROCm/rocm-systems#11589, as CUDA answers)
            raise CallRejected(INVALID_VALUE)
        if stream.is_default:  # it cannot be captured, so it cannot join one
            capture.invalid = True
            raise CallRejected(CAPTURE_IMPLICIT)
        capture.join(stream, event.captured)
