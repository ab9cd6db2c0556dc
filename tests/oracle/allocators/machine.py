"""Streams, events and a log: the part of a device that every trial allocator stands on.

Work is a graph of tickets. A ticket is done once all that it waits for is done; a stall is a ticket that waits for
its release. Everything runs as soon as it can.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce.model.observations import (
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleCreated,
    HandleDestroyed,
    HandleKind,
    Observation,
    StreamSynchronized,
)


class Ticket:
    """A piece of work: done once everything it waits for is done."""

    __slots__ = ("_dependents", "gate", "pending")

    def __init__(self, waits_for: list[Ticket], *, gate: bool = False) -> None:
        self._dependents: list[Ticket] = []
        self.gate = gate
        self.pending = {ticket for ticket in waits_for if not ticket.done}
        for ticket in self.pending:
            ticket._dependents.append(self)

    @property
    def done(self) -> bool:
        return not self.pending and not self.gate

    def open(self) -> None:
        """End a stall."""
        self.gate = False
        if not self.pending:
            self._finish()

    def _finish(self) -> None:
        ready: list[Ticket] = [self]
        while ready:
            ticket = ready.pop()
            for dependent in ticket._dependents:
                dependent.pending.discard(ticket)
                if dependent.done:
                    ready.append(dependent)
            ticket._dependents = []

    def force(self) -> None:
        """Open every stall that this waits for, as a synchronisation does."""
        seen: set[Ticket] = set()
        walk = [self]
        while walk:
            ticket = walk.pop()
            if ticket in seen:
                continue
            seen.add(ticket)
            walk.extend(ticket.pending)
        for ticket in seen:
            if ticket.gate:
                ticket.open()


@dataclass(eq=False)
class Stream:
    """An in-order queue; ``tail`` is its last work, ``gate`` its stall."""

    name: str
    device: int
    nonblocking: bool
    alive: bool = True
    tail: Ticket = field(default_factory=lambda: Ticket([]))
    gate: Ticket | None = None


@dataclass(eq=False)
class Event:
    """An event and what it was last recorded behind."""

    name: str
    device: int
    ticket: Ticket | None = None
    stream: Stream | None = None
    alive: bool = True


class Machine:
    """All streams of all devices. Calls that a library makes for itself go to ``log``."""

    def __init__(self, devices: int, *, stall_is_work: bool) -> None:
        self.defaults = [Stream("", device, nonblocking=False) for device in range(devices)]
        self.streams: list[Stream] = list(self.defaults)
        self.log: list[Observation] = []
        self.events_alive = 0
        self._stall_is_work = stall_is_work
        self._names = 0

    # -- what the sequence asks for --------------------------------------------------------------------------------

    def create_stream(self, name: str, device: int, *, nonblocking: bool) -> Stream:
        stream = Stream(name, device, nonblocking)
        self.streams.append(stream)
        return stream

    def destroy_stream(self, stream: Stream) -> None:
        stream.alive = False
        if stream.tail.done:
            self.streams.remove(stream)

    def enqueue(self, stream: Stream) -> Ticket:
        """Put work on a stream."""
        waits = [stream.tail, *self._legacy(stream)]
        if stream.gate is not None:
            waits.append(stream.gate)
        stream.tail = Ticket(waits)
        return stream.tail

    def _legacy(self, stream: Stream) -> list[Ticket]:
        if stream.nonblocking:
            return []
        default = self.defaults[stream.device]
        if stream is not default:
            return [default.tail]
        return [other.tail for other in self.streams if other.device == stream.device and not other.nonblocking]

    def stall(self, stream: Stream) -> None:
        if stream.gate is None:
            stream.gate = Ticket([stream.tail], gate=True)
            if self._stall_is_work:
                stream.tail = stream.gate

    def release(self, stream: Stream) -> None:
        if stream.gate is not None:
            stream.gate.open()
            stream.gate = None

    def force(self, ticket: Ticket) -> None:
        """Wait on the host."""
        ticket.force()
        for stream in self.streams:
            if stream.gate is not None and not stream.gate.gate:
                stream.gate = None
        self.streams = [s for s in self.streams if s.alive or not s.tail.done]

    def synchronize(self, stream: Stream) -> None:
        for ticket in (stream.tail, *self._legacy(stream), *([stream.gate] if stream.gate else [])):
            self.force(ticket)

    def synchronize_device(self, device: int) -> None:
        for stream in list(self.streams):
            if stream.device == device:
                self.synchronize(stream)

    def record(self, event: Event, stream: Stream) -> None:
        event.ticket = self.enqueue(stream)
        event.stream = stream

    def wait(self, stream: Stream, event: Event) -> None:
        if event.ticket is not None and not event.ticket.done:
            stream.tail = Ticket([stream.tail, event.ticket])

    # -- what a library does for itself ----------------------------------------------------------------------------

    def next_name(self) -> str:
        """Return a name for an event of the library's own."""
        self._names += 1
        return f"internal:{self._names}"

    def own_event(self, stream: Stream) -> Event:
        """Create an event and record it behind a stream's work."""
        event = Event(self.next_name(), stream.device)
        self.events_alive += 1
        self.record(event, stream)
        self.log += [HandleCreated(HandleKind.EVENT, event.name), EventRecorded(event.name, stream.name)]
        return event

    def own_wait(self, stream: Stream, event: Event) -> None:
        self.wait(stream, event)
        alive = event.stream is None or event.stream.alive
        self.log.append(EventWaited(event.name, stream.name, alive))

    def own_query(self, event: Event) -> bool:
        done = event.ticket is None or event.ticket.done
        if done:
            self.log.append(EventCompleted(event.name))
        return done

    def own_host_wait(self, event: Event) -> None:
        if event.ticket is not None:
            self.force(event.ticket)
        self.log.append(EventWaited(event.name, None, event.stream is None or event.stream.alive))

    def own_destroy(self, event: Event) -> None:
        if event.alive:
            event.alive = False
            self.events_alive -= 1
            self.log.append(HandleDestroyed(HandleKind.EVENT, event.name))

    def own_synchronize(self, stream: Stream) -> None:
        self.synchronize(stream)
        self.log.append(StreamSynchronized(stream.name))

    def own_synchronize_device(self, device: int) -> None:
        self.synchronize_device(device)
        self.log.append(DeviceSynchronized(device))
