"""Streams and events of the CuPy backend: CuPy's own classes, with every record, answer and end of theirs seen.

CuPy reaches the current stream as a Python object and calls its methods, also for what it does for itself: ``asarray``
records the event behind which a pinned buffer is kept. So a subclass that is current sees all of it.

What waits for a closed gate although nothing says so (a runtime that shares its queues, an allocation) is
not left to hang: see :meth:`Streams.guarded`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from quiesce.backends.cupy.ledger import NOT_READY, Cupy, CupyLedger
from quiesce.backends.cupy.stalls import Gate, Gatekeeper
from quiesce.backends.device_tables import GatedEvent, GatedStream, StreamTable
from quiesce.model.observations import DEFAULT_STREAM, HandleKind, default_stream_of

_PATIENCE_SECONDS: Final = 5.0
"""How long a call may take while a stream is stalled before it is taken to wait for it. No verdict depends on this."""


class Unsupportable(Exception):
    """The request is one that CuPy, or the device, has no way to perform; the text says why."""


@dataclass(slots=True, eq=False)
class Stream(GatedStream[Gate]):
    """One stream of a device."""

    device: int
    nonblocking: bool = False


@dataclass(slots=True, eq=False)
class Event(GatedEvent[Gate]):
    """One event of a device."""

    device: int


class Streams(StreamTable[Stream, Event, Gate]):
    """All streams and events of one context, by slot."""

    def __init__(self, cupy: Cupy, devices: int, ledger: CupyLedger, gatekeeper: Gatekeeper | None) -> None:
        super().__init__()
        self._cupy = cupy
        self._ledger = ledger
        self._gatekeeper = gatekeeper
        self._make_event = _seen_events(cupy, ledger)
        self._make_stream = _seen_streams(cupy, ledger, self._make_event)
        self._orphaned: set[Gate] = set()
        self.capturing: set[Stream] = set()
        """The streams that a capture began on."""
        self.defaults = [
            Stream(DEFAULT_STREAM, self._make_stream(default_stream_of(device), null=True), device)
            for device in range(devices)
        ]

    # -- finding and making ----------------------------------------------------------------------------------------

    @property
    def living(self) -> list[Stream]:
        """The streams that exist, the default ones included."""
        return [*self.defaults, *(stream for stream in self._streams.values() if stream.handle is not None)]

    def find(self, slot: str | None, device: int) -> Stream:
        """Return a living stream; None is the default stream of ``device``. Raises :class:`Refused`."""
        return self.defaults[device] if slot is None else self._find(slot)

    def create(self, slot: str, device: int, *, nonblocking: bool) -> None:
        """Create a stream; a slot that names a living one is refused."""
        self._add(slot, lambda: Stream(slot, self._make_stream(slot, non_blocking=nonblocking), device, nonblocking))

    def destroy(self, stream: Stream) -> None:
        """Destroy the handle; pending work completes all the same, and the default stream still waits for it.

        HIP may wait for it at once ("may wait for all commands queued to the stream", ``hipStreamDestroy``).
        """
        handle = stream.require()
        if stream in self.capturing:
            self.abandon_capture(stream)
        if self._cupy.cuda.runtime.is_hip and stream.pending():
            self.end_all()
        handle.destroy()
        stream.handle = None
        self._orphaned |= stream.pending()
        if not stream.nonblocking:
            self.defaults[stream.device].gates |= stream.pending()

    def create_event(self, slot: str, device: int) -> None:
        """Create an event; a slot that names a living one is refused."""
        self._add_event(slot, lambda: Event(self._make_event(slot), device))

    def destroy_event(self, slot: str) -> None:
        """Destroy an event; waits that were enqueued for it hold on."""
        self.find_event(slot).handle.destroy()
        super().destroy_event(slot)

    # -- order -----------------------------------------------------------------------------------------------------

    def follow_default(self, stream: Stream) -> None:
        """Hand gates on that the order of the legacy default stream puts before the stream's next action."""
        if stream.nonblocking:
            return
        for other in self.living:
            is_default = DEFAULT_STREAM in (stream.name, other.name)
            if is_default and other.device == stream.device and not other.nonblocking:
                stream.gates |= other.pending()

    def mark(self, stream: Stream) -> Event:
        """Return an event of the backend's own, recorded behind the work of ``stream`` so far."""
        self.follow_default(stream)
        return Event(stream.require().record(), stream.device, gates=stream.pending())

    def record(self, event: Event, stream: Stream) -> None:
        """Record an event behind the work of ``stream``."""
        self.follow_default(stream)
        stream.require().record(event.handle)
        event.gates = stream.pending()

    def wait(self, event: Event, stream: Stream) -> None:
        """Make later work of ``stream`` wait for the event's last record."""
        self.follow_default(stream)
        stream.require().wait_event(event.handle)
        stream.gates |= event.pending()

    def is_captured(self, stream: Stream) -> bool:
        """Whether the stream takes part in a capture, good or bad. The runtime is asked only while there is one."""
        if not self.capturing or stream.handle is None:
            return False
        try:
            return bool(stream.handle.is_capturing())
        except RuntimeError:  # an invalidated capture, or a default stream that would have to wait for one
            return True

    def abandon_capture(self, stream: Stream) -> None:
        """End a capture for good, whatever comes of it: one left open would forbid calls to the whole process."""
        with suppress(RuntimeError):
            stream.require().end_capture()
        self.capturing.discard(stream)

    # -- stalls ----------------------------------------------------------------------------------------------------

    def stall(self, stream: Stream) -> None:
        """Hold ``stream`` behind a new gate. Raises :class:`Unsupportable` where it cannot be made to wait."""
        gatekeeper = self._gatekeeper
        if gatekeeper is None or self.is_captured(stream) or (gatekeeper.is_used_up and self.capturing):
            raise Unsupportable("the stream cannot be made to wait for a value")
        if gatekeeper.is_used_up:  # a word serves again only once its stream has passed
            self._finish_everything()
            gatekeeper.recycle()
        self.follow_default(stream)
        try:
            gate = gatekeeper.close_before(stream.require().ptr)
        except OSError as error:
            raise Unsupportable(str(error)) from error
        self._hold(stream, gate)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """End every stall if the runtime seems to wait for one: the calls inside must come to an end.

        Raises :class:`Unsupportable` where that happened and cannot be told, because a stream is being captured.
        """
        if not self._closed_gates:
            yield
            return
        gates = tuple(self._closed_gates)

        def open_gates() -> None:
            for gate in gates:
                gate.open()

        timer = threading.Timer(_PATIENCE_SECONDS, open_gates)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
        if any(gate in self._closed_gates and not gate.closed for gate in gates):
            if self.capturing:
                raise Unsupportable("the runtime waited for a stalled stream while another was being captured")
            self.end_all()

    @property
    def is_stalled(self) -> bool:
        """Whether some stream is held back."""
        return bool(self._closed_gates)

    def end_all(self) -> None:
        """End every stall, and wait for what it held back: the host is about to call what may wait anyway.

        While a stream is being captured nobody may wait; then the stalls stay, and the context refuses what would wait.
        """
        if self._closed_gates and not self.capturing:
            self._finish_everything()

    def _finish_everything(self) -> None:
        self._open(self._closed_gates)
        for device in range(len(self.defaults)):
            with self._cupy.cuda.Device(device):
                self._cupy.cuda.runtime.deviceSynchronize()
            self._ledger.note_device_synchronized(device)

    # -- waiting ---------------------------------------------------------------------------------------------------

    def synchronize(self, stream: Stream) -> None:
        """Open the gates that ``stream`` waits for, then block until it is idle."""
        self._open(self._before(stream))
        stream.require().synchronize()

    def synchronize_event(self, event: Event) -> None:
        """Open the gates that the last record waits for, then block until it is complete."""
        self._open(event.pending())
        event.handle.synchronize()

    def query(self, stream: Stream) -> int:
        """Ask the runtime whether ``stream`` is idle; return its answer, an error number.

        Work that nothing holds back is awaited, so that the answer does not depend on timing.
        """
        handle = stream.require()
        status = int(self._cupy.cuda.runtime.streamQuery(handle.ptr))
        if status != NOT_READY or self._may_be_held_back(self._before(stream)):
            return status
        handle.synchronize()
        return int(self._cupy.cuda.runtime.streamQuery(handle.ptr))

    def query_event(self, event: Event) -> int:
        """Ask the runtime whether the event's last record is complete, likewise."""
        status = int(self._cupy.cuda.runtime.eventQuery(event.handle.ptr))
        if status != NOT_READY or self._may_be_held_back(event.pending()):
            return status
        event.handle.synchronize()
        return int(self._cupy.cuda.runtime.eventQuery(event.handle.ptr))

    def _before(self, stream: Stream) -> frozenset[Gate]:
        """Return the closed gates before the stream's work; the default stream stands for every blocking one."""
        if stream.name == DEFAULT_STREAM:
            self.follow_default(stream)
        return stream.pending()

    def _may_be_held_back(self, gates: frozenset[Gate]) -> bool:
        return bool(gates or self.capturing)

    def synchronize_device(self, device: int) -> None:
        """Open every gate before work of a device, then block until it is idle."""
        streams = [stream for stream in self.living if stream.device == device]
        self._open(frozenset(self._orphaned).union(*(stream.pending() for stream in streams)))
        self._orphaned.clear()
        self._cupy.cuda.runtime.deviceSynchronize()

    def close(self) -> None:
        """Give every stream and event up. All work must be complete."""
        self._streams.clear()
        self._events.clear()
        self.capturing.clear()
        self.defaults.clear()
        if self._gatekeeper is not None:
            self._gatekeeper.close()


def _seen_events(cupy: Cupy, ledger: CupyLedger) -> Any:
    class SeenEvent(cupy.cuda.Event):  # type: ignore[misc]  # CuPy's classes are Any
        ptr = 0

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name
            ledger.note_created(HandleKind.EVENT)

        @property
        def done(self) -> bool:
            complete = bool(super().done)
            if complete:
                ledger.note_completion(self.name)
            return complete

        def destroy(self) -> None:
            super().__del__()
            self.ptr = 0
            ledger.note_destroyed(HandleKind.EVENT, self.name)

        def __del__(self) -> None:
            if self.ptr:
                self.destroy()

    return SeenEvent


def _seen_streams(cupy: Cupy, ledger: CupyLedger, make_event: Any) -> Any:
    class SeenStream(cupy.cuda.Stream):  # type: ignore[misc]  # CuPy's classes are Any
        ptr = 0

        def __init__(self, name: str, **options: bool) -> None:
            super().__init__(**options)
            self.name = name
            if self.ptr:
                ledger.note_created(HandleKind.STREAM)

        def record(self, event: Any = None) -> Any:
            if event is None:
                event = make_event(ledger.name_event())
            super().record(event)
            if isinstance(event, make_event):
                ledger.note_record(event.name, self.name)
            return event

        def wait_event(self, event: Any) -> None:
            super().wait_event(event)
            if isinstance(event, make_event):
                ledger.note_wait(event.name, self.name)

        def destroy(self) -> None:
            super().__del__()
            self.ptr = 0
            ledger.note_destroyed(HandleKind.STREAM, self.name)

        def __del__(self) -> None:
            if self.ptr:
                self.destroy()

    return SeenStream
