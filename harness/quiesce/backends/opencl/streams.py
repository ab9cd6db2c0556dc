"""Streams of the OpenCL backend: in-order command queues, markers for events, user events for stalls.

OpenCL has no call that asks whether a queue waits for a user event, and blocking on such a queue would hang for
ever. So every stream carries the closed gates that its work waits for, handed on eagerly along each edge from
queue to queue; a synchronisation opens exactly those before it blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quiesce.model.observations import DEFAULT_STREAM
from quiesce.model.outcomes import INVALID_HANDLE, INVALID_VALUE

if TYPE_CHECKING:
    import types

    import pyopencl as cl


class Refused(Exception):
    """The sequence asked for something that is refused with ``code`` before OpenCL is touched."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Gate:
    """A user event that a stalled queue waits for."""

    def __init__(self, event: cl.UserEvent) -> None:
        self._event: cl.UserEvent | None = event
        self.handle = event.int_ptr

    @property
    def closed(self) -> bool:
        """Whether work still waits here."""
        return self._event is not None

    def open(self) -> None:
        """Let the work pass; opening twice is harmless."""
        event, self._event = self._event, None
        if event is not None:
            event.set_status(0)  # CL_COMPLETE


@dataclass(slots=True, eq=False)
class Stream:
    """One in-order queue, and the gates that its work waits for. A destroyed stream has no ``queue`` but an ``end``."""

    name: str
    queue: cl.CommandQueue | None
    end: Event | None = None
    gates: set[Gate] = field(default_factory=set)
    stalls: list[Gate] = field(default_factory=list)

    def require(self) -> cl.CommandQueue:
        """Return the queue. Raises :class:`Refused` where the stream was destroyed."""
        if self.queue is None:
            raise Refused(INVALID_HANDLE)
        return self.queue

    def pending(self) -> frozenset[Gate]:
        """Return the closed gates that work enqueued so far waits for."""
        self.gates = {gate for gate in self.gates if gate.closed}
        return frozenset(self.gates)

    def follow(self, other: Stream) -> None:
        """Remember that a wait for the work of ``other`` was enqueued here, and flush both."""
        self.gates |= other.pending()
        for queue in (other.queue, self.queue):
            if queue is not None:
                queue.flush()


@dataclass(slots=True, eq=False)
class Event:
    """An event; ``marker`` is its last record (None: never recorded)."""

    marker: cl.Event | None = None
    gates: frozenset[Gate] = frozenset()

    def pending(self) -> frozenset[Gate]:
        """Return the closed gates that the last record waits for."""
        return frozenset(gate for gate in self.gates if gate.closed)


class Streams:
    """All streams and events of one context, by slot. A slot that names a destroyed one holds it, dead, or None."""

    def __init__(self, pyopencl: types.ModuleType, context: cl.Context) -> None:
        self._cl = pyopencl
        self._context = context
        self._probe: cl.CommandQueue | None = pyopencl.CommandQueue(context)
        self._by_queue: dict[int, Stream] = {}
        self._streams: dict[str, Stream] = {}
        self._events: dict[str, Event | None] = {}
        self._retired: list[Event] = []
        self._closed_gates: set[Gate] = set()
        self.default = self._make(DEFAULT_STREAM)

    def _make(self, name: str) -> Stream:
        queue = self._cl.CommandQueue(self._context)
        stream = Stream(name, queue)
        self._by_queue[queue.int_ptr] = stream
        return stream

    @property
    def stream_count(self) -> int:
        """Streams that the sequence created and did not destroy."""
        return sum(stream.queue is not None for stream in self._streams.values())

    @property
    def event_count(self) -> int:
        """Events that the sequence created and did not destroy."""
        return sum(event is not None for event in self._events.values())

    def find_by_queue(self, handle: int) -> Stream | None:
        """Return the stream, dead or alive, that the queue with this handle belongs or last belonged to."""
        return self._by_queue.get(handle)

    def is_gate(self, handle: int) -> bool:
        """Whether the event with this handle is a closed gate, and so marks no work."""
        return any(gate.handle == handle for gate in self._closed_gates)

    def find(self, slot: str | None) -> Stream:
        """Return a living stream; None is the default stream. Raises :class:`Refused`."""
        if slot is None:
            return self.default
        if slot not in self._streams:
            raise Refused(INVALID_VALUE)
        self._streams[slot].require()
        return self._streams[slot]

    def find_event(self, slot: str) -> Event:
        """Return a living event. Raises :class:`Refused`."""
        if slot not in self._events:
            raise Refused(INVALID_VALUE)
        event = self._events[slot]
        if event is None:
            raise Refused(INVALID_HANDLE)
        return event

    def create(self, slot: str) -> Stream:
        """Create a stream; a slot that names a living one is refused."""
        if slot in self._streams and self._streams[slot].queue is not None:
            raise Refused(INVALID_VALUE)
        self._streams[slot] = self._make(slot)
        return self._streams[slot]

    def destroy(self, stream: Stream) -> None:
        """Give the queue up without blocking; pending work stays with the runtime, which completes it."""
        stream.end = self.mark(stream)
        self._retired.append(stream.end)
        stream.queue = None

    def create_event(self, slot: str) -> None:
        """Create an event; a slot that names a living one is refused."""
        if self._events.get(slot) is not None:
            raise Refused(INVALID_VALUE)
        self._events[slot] = Event()

    def destroy_event(self, slot: str) -> None:
        """Drop an event; waits that were enqueued for it hold on."""
        self.find_event(slot)
        self._events[slot] = None

    def mark(self, stream: Stream) -> Event:
        """Return an event recorded behind the work of ``stream`` so far; a destroyed one has it already."""
        if stream.end is not None:
            return stream.end
        queue = stream.require()
        marker = self._cl.enqueue_marker(queue)
        queue.flush()
        return Event(marker, stream.pending())

    def record(self, slot: str, stream: Stream) -> None:
        """Record an event behind the work of ``stream``."""
        self.find_event(slot)
        self._events[slot] = self.mark(stream)

    def wait(self, event: Event, stream: Stream) -> None:
        """Make later work of ``stream`` wait for the event's last record."""
        if event.marker is None:
            return
        queue = stream.require()
        self._cl.enqueue_barrier(queue, wait_for=[event.marker])
        queue.flush()
        stream.gates |= event.pending()

    def stall(self, stream: Stream) -> None:
        """Hold ``stream`` behind a new gate."""
        queue = stream.require()
        event = self._cl.UserEvent(self._context)
        gate = Gate(event)
        self._closed_gates.add(gate)
        self._cl.enqueue_barrier(queue, wait_for=[event])
        queue.flush()
        stream.gates.add(gate)
        stream.stalls.append(gate)

    def _open(self, gates: Iterable[Gate]) -> None:
        for gate in gates:
            gate.open()
            self._closed_gates.discard(gate)

    def release(self, stream: Stream) -> None:
        """End every stall of ``stream``."""
        stream.require()
        self._open(stream.stalls)
        stream.stalls.clear()

    def is_complete(self, event: Event) -> bool:
        """Ask the runtime whether a record is complete.

        Work that nothing holds back is awaited, so that the answer does not depend on timing. For work behind a
        closed gate the runtime's own status is the answer, after it had a turn: a wrong completion must show.
        """
        if event.marker is None:
            return True
        if not event.pending():
            event.marker.wait()
            return True
        self._cl.enqueue_marker(self._probe).wait()
        status = int(event.marker.command_execution_status)
        if status < 0:
            raise Refused(f"execution-status-{status}")
        return status == int(self._cl.command_execution_status.COMPLETE)

    def is_idle(self, stream: Stream) -> bool:
        """Ask the runtime whether everything enqueued on ``stream`` is complete."""
        return self.is_complete(self.mark(stream))

    def synchronize(self, stream: Stream) -> None:
        """Open the gates that ``stream`` waits for, then block until it is idle."""
        self._open(stream.pending())
        stream.require().finish()

    def synchronize_event(self, event: Event) -> None:
        """Open the gates that the last record waits for, then block until it is complete."""
        self._open(event.pending())
        if event.marker is not None:
            event.marker.wait()

    def settle(self) -> None:
        """Wait for all work that nothing holds back, so that what is counted next does not depend on timing."""
        for stream in self._by_queue.values():
            if stream.queue is not None and not stream.pending():
                stream.queue.finish()
        held_back = []
        for retired in self._retired:
            if retired.pending():
                held_back.append(retired)
            else:
                self.synchronize_event(retired)
        self._retired = held_back
        self._cl.enqueue_marker(self._probe).wait()  # the runtime drops its own references a moment later

    def synchronize_all(self) -> None:
        """Open every gate and block until all work is complete, that of destroyed streams included."""
        self._open(tuple(self._closed_gates))
        for retired in self._retired:
            self.synchronize_event(retired)
        self._retired.clear()
        self.settle()

    def close(self) -> None:
        """Complete all work and give every queue and event up."""
        self.synchronize_all()
        for stream in self._by_queue.values():
            stream.queue = None
        self._by_queue.clear()
        self._streams.clear()
        self._events.clear()
        self._probe = None
