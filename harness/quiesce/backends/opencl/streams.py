"""Streams of the OpenCL backend: in-order command queues, markers for events, user events for stalls.

OpenCL has no call that asks whether a queue waits for a user event, and blocking on such a queue would hang for
ever. So a synchronisation opens the gates that a queue waits for before it blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quiesce.backends.device_tables import GatedEvent, GatedStream, Refused, StreamTable
from quiesce.model.observations import DEFAULT_STREAM

if TYPE_CHECKING:
    import types

    import pyopencl as cl


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
class Stream(GatedStream[Gate]):
    """One in-order queue. A destroyed stream has no ``handle`` but an ``end``."""

    end: Event | None = None

    def follow(self, other: Stream) -> None:
        """Remember that a wait for the work of ``other`` was enqueued here, and flush both."""
        self.gates |= other.pending()
        for queue in (other.handle, self.handle):
            if queue is not None:
                queue.flush()


@dataclass(slots=True, eq=False)
class Event(GatedEvent[Gate]):
    """An event; ``handle`` is the marker of its last record (None: never recorded)."""


class Streams(StreamTable[Stream, Event, Gate]):
    """All streams and events of one context, by slot."""

    def __init__(self, pyopencl: types.ModuleType, context: cl.Context) -> None:
        super().__init__()
        self._cl = pyopencl
        self._context = context
        self._probe: cl.CommandQueue | None = pyopencl.CommandQueue(context)
        self._by_queue: dict[int, Stream] = {}
        self._retired: list[Event] = []
        self.default = self._make(DEFAULT_STREAM)

    def _make(self, name: str) -> Stream:
        queue = self._cl.CommandQueue(self._context)
        stream = Stream(name, queue)
        self._by_queue[queue.int_ptr] = stream
        return stream

    @property
    def stream_count(self) -> int:
        """Streams that the sequence created and did not destroy."""
        return sum(stream.handle is not None for stream in self._streams.values())

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
        return self.default if slot is None else self._find(slot)

    def create(self, slot: str) -> Stream:
        """Create a stream; a slot that names a living one is refused."""
        return self._add(slot, lambda: self._make(slot))

    def destroy(self, stream: Stream) -> None:
        """Give the queue up without blocking; pending work stays with the runtime, which completes it."""
        stream.end = self.mark(stream)
        self._retired.append(stream.end)
        stream.handle = None

    def create_event(self, slot: str) -> None:
        """Create an event; a slot that names a living one is refused."""
        self._add_event(slot, lambda: Event(None))

    def mark(self, stream: Stream) -> Event:
        """Return an event recorded behind the work of ``stream`` so far; a destroyed one has it already."""
        if stream.end is not None:
            return stream.end
        queue = stream.require()
        marker = self._cl.enqueue_marker(queue)
        queue.flush()
        return Event(marker, gates=stream.pending())

    def record(self, slot: str, stream: Stream) -> None:
        """Record an event behind the work of ``stream``."""
        self.find_event(slot)
        self._events[slot] = self.mark(stream)

    def wait(self, event: Event, stream: Stream) -> None:
        """Make later work of ``stream`` wait for the event's last record."""
        if event.handle is None:
            return
        queue = stream.require()
        self._cl.enqueue_barrier(queue, wait_for=[event.handle])
        queue.flush()
        stream.gates |= event.pending()

    def stall(self, stream: Stream) -> None:
        """Hold ``stream`` behind a new gate."""
        queue = stream.require()
        event = self._cl.UserEvent(self._context)
        gate = Gate(event)
        self._closed_gates.add(gate)  # the ledger sees the barrier, and asks what it waits for
        self._cl.enqueue_barrier(queue, wait_for=[event])
        queue.flush()
        self._hold(stream, gate)

    def is_complete(self, event: Event) -> bool:
        """Ask the runtime whether a record is complete.

        Work that nothing holds back is awaited, so that the answer does not depend on timing. For work behind a
        closed gate the runtime's own status is the answer, after it had a turn: a wrong completion must show.
        """
        if event.handle is None:
            return True
        if not event.pending():
            event.handle.wait()
            return True
        self._cl.enqueue_marker(self._probe).wait()
        status = int(event.handle.command_execution_status)
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
        if event.handle is not None:
            event.handle.wait()

    def settle(self) -> None:
        """Wait for all work that nothing holds back, so that what is counted next does not depend on timing."""
        for stream in self._by_queue.values():
            if stream.handle is not None and not stream.pending():
                stream.handle.finish()
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
        self._open(self._closed_gates)
        for retired in self._retired:
            self.synchronize_event(retired)
        self._retired.clear()
        self.settle()

    def close(self) -> None:
        """Complete all work and give every queue and event up."""
        self.synchronize_all()
        for stream in self._by_queue.values():
            stream.handle = None
        self._by_queue.clear()
        self._streams.clear()
        self._events.clear()
        self._probe = None
