"""Streams and events: in-order queues of work that runs as soon as nothing holds it back.

The schedule is eager, except where the sequence stalls a stream: then its work stays pending until the stall is
released or a synchronisation forces it. Handles are recycled as eagerly as is legal; objects never are.
The default stream is CUDA's and HIP's legacy one: it and every blocking stream wait for each other.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from quiesce.backend import Flavour
from quiesce.observations import (
    DEFAULT_STREAM,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleCreated,
    HandleDestroyed,
    HandleKind,
    StreamSynchronized,
)
from quiesce.outcomes import CAPTURE_IMPLICIT, CAPTURE_UNSUPPORTED, INVALID_HANDLE
from quiesce.reference.calls import CallRejected
from quiesce.reference.captures import Capture, Captures
from quiesce.reference.ledger import Ledger


@dataclass(slots=True, eq=False)
class Record:
    """One recording of an event: a point in a stream's queue that completes once."""

    stream: Stream
    complete: bool = False
    waiters: list[Stream] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Work:
    pass


@dataclass(slots=True, eq=False)
class _Gate:
    open: bool = False


@dataclass(slots=True, eq=False)
class _Wait:
    record: Record


_Item: TypeAlias = _Work | _Gate | _Wait | Record


@dataclass(slots=True, eq=False)
class Stream:
    """A queue of work on one device."""

    name: str
    handle: int
    device: int
    nonblocking: bool = False
    alive: bool = True
    queue: deque[_Item] = field(default_factory=deque)
    gates: list[_Gate] = field(default_factory=list)
    capture: Capture | None = None

    @property
    def is_default(self) -> bool:
        """Whether this is the legacy default stream of its device."""
        return self.name == DEFAULT_STREAM


@dataclass(slots=True, eq=False)
class Event:
    """An event; ``record`` is its last recording, ``last_stream`` the stream of that, dead or alive."""

    name: str
    handle: int
    device: int
    alive: bool = True
    record: Record | None = None
    last_stream: Stream | None = None
    capture: Capture | None = None


class Streams:
    """All streams and events of all devices. Every method may raise :class:`CallRejected`."""

    def __init__(self, devices: int, ledger: Ledger, captures: Captures, flavour: Flavour = Flavour.CUDA) -> None:
        self._ledger = ledger
        self._flavour = flavour
        self.captures = captures
        self.defaults = [Stream(DEFAULT_STREAM, 0, device) for device in range(devices)]
        self._busy: dict[Stream, None] = {}
        self._stream_handles = _Handles()
        self._event_handles = _Handles()
        self._internal = 0

    # -- handles ---------------------------------------------------------------------------------------------------

    def create_stream(self, name: str, device: int, *, nonblocking: bool = False) -> Stream:
        """Create a stream on ``device``."""
        stream = Stream(name, self._stream_handles.take(), device, nonblocking)
        self._ledger.see(HandleCreated(HandleKind.STREAM, name))
        return stream

    def destroy_stream(self, stream: Stream) -> None:
        """Destroy a stream; its pending work still completes, and its handle may be handed out again.

        CUDA returns at once and destroys later; HIP "may wait for all commands queued" (``hipStreamDestroy``): it does.
        """
        self.require(stream)
        self.captures.abandon(stream)
        if self._flavour is Flavour.HIP and stream.queue:
            self._ledger.see(StreamSynchronized(stream.name))
            self._force(self._mark(stream))
        stream.alive = False
        self._stream_handles.give_back(stream.handle)
        self._ledger.see(HandleDestroyed(HandleKind.STREAM, stream.name))

    def create_event(self, name: str, device: int) -> Event:
        """Create an event on ``device``."""
        event = Event(name, self._event_handles.take(), device)
        self._ledger.see(HandleCreated(HandleKind.EVENT, name))
        return event

    def create_internal_event(self, device: int) -> Event:
        """Create an event that a library uses for itself."""
        self._internal += 1
        return self.create_event(f"internal:{self._internal}", device)

    def destroy_event(self, event: Event) -> None:
        """Destroy an event; waits that were enqueued for it still hold."""
        if not event.alive:
            raise CallRejected(INVALID_HANDLE)
        event.alive = False
        self._event_handles.give_back(event.handle)
        self._ledger.see(HandleDestroyed(HandleKind.EVENT, event.name))

    @staticmethod
    def require(stream: Stream) -> None:
        """Refuse a stream that was destroyed."""
        if not stream.alive:
            raise CallRejected(INVALID_HANDLE)

    # -- work ------------------------------------------------------------------------------------------------------

    def enqueue(self, stream: Stream) -> None:
        """Put work on ``stream``."""
        self.require(stream)
        self.order_with_default(stream)
        self._push(stream, _Work())

    def order_with_default(self, stream: Stream) -> None:
        """Apply the legacy default stream's implicit ordering."""
        if stream.nonblocking or stream.capture is not None:
            return
        if stream.is_default:
            if any(capture.origin.device == stream.device for capture in self.captures.active.values()):
                self._forbid_implicit(stream)
            others = [s for s in self._busy if s.device == stream.device and not s.nonblocking and s is not stream]
        else:
            default = self.defaults[stream.device]
            others = [default] if default in self._busy else []
        for other in others:
            self._ledger.step()
            self._wait_for(stream, self._mark(other))

    def _forbid_implicit(self, default: Stream) -> None:
        for capture in self.captures.active.values():
            if any(s.device == default.device and not s.nonblocking for s in capture.streams):
                capture.invalid = True
                raise CallRejected(CAPTURE_IMPLICIT)

    def _mark(self, stream: Stream) -> Record:
        record = Record(stream)
        self._push(stream, record)
        return record

    def _wait_for(self, stream: Stream, record: Record) -> None:
        if not record.complete:
            record.waiters.append(stream)
            self._push(stream, _Wait(record))

    # -- events ----------------------------------------------------------------------------------------------------

    def record(self, event: Event, stream: Stream) -> None:
        """Record ``event`` behind the work of ``stream``. Both must be on one device."""
        self.require(stream)
        if not event.alive or event.device != stream.device:
            raise CallRejected(INVALID_HANDLE)
        event.last_stream = stream
        event.capture = stream.capture
        if stream.capture is None:
            self.order_with_default(stream)
            event.record = self._mark(stream)
        self._ledger.see(EventRecorded(event.name, stream.name))

    def wait(self, stream: Stream, event: Event) -> None:
        """Make later work of ``stream`` wait for the event's last recording; one never recorded holds nothing."""
        self.require(stream)
        if not event.alive:
            raise CallRejected(INVALID_HANDLE)
        self.captures.wait(stream, event)
        self._see_wait(event, stream.name)
        if event.capture is None and event.record is not None:
            self._wait_for(stream, event.record)

    def is_complete(self, event: Event) -> bool:
        """Ask whether the event's last recording is complete. Illegal while a capture is not relaxed."""
        if not event.alive:
            raise CallRejected(INVALID_HANDLE)
        self.captures.forbid_captured(event)
        self.captures.forbid_unsafe_call()
        if event.record is not None and not event.record.complete:
            return False
        self._ledger.see(EventCompleted(event.name))
        return True

    def synchronize_event(self, event: Event) -> None:
        """Block until the event's last recording is complete."""
        if not event.alive:
            raise CallRejected(INVALID_HANDLE)
        self.captures.forbid_captured(event)
        self.captures.forbid_unsafe_call()
        self._see_wait(event, None)
        if event.record is not None:
            self._force(event.record)

    def _see_wait(self, event: Event, waiter: str | None) -> None:
        alive = event.last_stream is None or event.last_stream.alive
        self._ledger.see(EventWaited(event.name, waiter, alive))

    # -- synchronisation -------------------------------------------------------------------------------------------

    def is_idle(self, stream: Stream) -> bool:
        """Ask whether everything enqueued on ``stream`` is complete."""
        self.require(stream)
        self.captures.forbid_on(stream)
        return not stream.queue

    def synchronize_stream(self, stream: Stream) -> None:
        """Block until ``stream`` is idle."""
        self.require(stream)
        self.captures.forbid_on(stream)
        if stream.is_default and self.captures.any_active:
            raise CallRejected(CAPTURE_UNSUPPORTED)
        self.order_with_default(stream)
        self._ledger.see(StreamSynchronized(stream.name))
        if stream.queue:
            self._force(self._mark(stream))

    def synchronize_device(self, device: int) -> None:
        """Block until every stream of ``device`` is idle."""
        if self.captures.any_active:
            for capture in self.captures.active.values():
                capture.invalid = True
            raise CallRejected(CAPTURE_UNSUPPORTED)
        self._ledger.see(DeviceSynchronized(device))
        for stream in [s for s in self._busy if s.device == device]:
            if stream.queue:
                self._force(self._mark(stream))

    def stall(self, stream: Stream) -> None:
        """Hold ``stream``: what is enqueued from now on stays pending."""
        self.require(stream)
        gate = _Gate()
        stream.gates.append(gate)
        self._push(stream, gate)

    def release(self, stream: Stream) -> None:
        """End every stall of ``stream``."""
        for gate in stream.gates:
            gate.open = True
        stream.gates.clear()
        self._advance(stream)

    def _force(self, record: Record) -> None:
        """Open what holds ``record`` back, the longest legal delay being over, until it completes."""
        needed = [record]
        while needed:
            self._ledger.step()
            stream = needed[-1].stream
            if needed[-1].complete:
                needed.pop()
                continue
            match stream.queue[0]:
                case _Gate() as gate:
                    gate.open = True
                    if gate in stream.gates:
                        stream.gates.remove(gate)
                    self._advance(stream)
                case _Wait(awaited) if not awaited.complete:
                    needed.append(awaited)
                case _:
                    self._advance(stream)

    def _push(self, stream: Stream, item: _Item) -> None:
        stream.queue.append(item)
        if len(stream.queue) == 1:
            self._busy[stream] = None
            self._advance(stream)

    def _advance(self, stream: Stream) -> None:
        """Run what can run on ``stream``, and on the streams that this wakes."""
        ready = [stream]
        while ready:
            current = ready.pop()
            while current.queue:
                self._ledger.step()
                match current.queue[0]:
                    case _Gate(False):
                        break
                    case _Wait(awaited) if not awaited.complete:
                        break
                    case Record() as record:
                        current.queue.popleft()
                        record.complete = True
                        ready.extend(record.waiters)
                        record.waiters.clear()
                    case _:
                        current.queue.popleft()
            if not current.queue:
                self._busy.pop(current, None)


class _Handles:
    """Small integers, the one given back last handed out first."""

    def __init__(self) -> None:
        self._next = 1
        self._free: list[int] = []

    def take(self) -> int:
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1

    def give_back(self, handle: int) -> None:
        self._free.append(handle)
