"""What a trial allocator is: it places blocks in backing memory and decides when freed memory may be used again."""

from __future__ import annotations

from dataclasses import dataclass, field

from .heap import Heap, NoMemory
from .machine import Event, Machine, Stream


@dataclass(eq=False)
class Use:
    """Work on a block: the stream that it went to."""

    stream: Stream


@dataclass(eq=False)
class Area:
    """A piece of backing memory: the chunk it lies in, and what has to be waited for before it is used again."""

    address: int
    size: int
    chunk: int
    guards: list[Event] = field(default_factory=list)
    """What is pending on a free area, and what its owner was ordered behind and has to pass on."""
    stream: Stream | None = None


class Policy:
    """The base of all allocators: guards, and the contract that the bench calls.

    ``host`` says that the host touches blocks at once, so that a wait on a stream is not enough.
    """

    aligns_backing = True

    def __init__(self, machine: Machine, heap: Heap, alignment: int, *, host: bool, limit: int | None = None) -> None:
        self.machine, self.heap, self.alignment, self.host, self.limit = machine, heap, alignment, host, limit
        self.held_bytes = 0
        self.chunks: dict[int, int] = {}
        self.events: dict[Event, int] = {}

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        """Return an area of at least ``size`` bytes; raises ``NoMemory``. The area's guards have been waited for."""
        raise NotImplementedError

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        """Take an area back, freed on ``stream``; ``uses`` are its uses, done or not: nobody knows without asking."""
        raise NotImplementedError

    def trim(self) -> None:
        """Release what is not used."""

    def settle(self) -> None:
        """Do what a synchronisation gives the chance to do."""

    def release(self) -> None:
        """Give everything back: the pool is going."""
        self.machine.own_synchronize_device(self.heap.device)
        self.clear()
        for event in list(self.events):
            self.machine.own_host_wait(event)
            self.machine.own_destroy(event)
        self.events.clear()
        for address in list(self.chunks):
            self.give_back(address)

    def clear(self) -> None:
        """Forget every free area."""

    # -- helpers ---------------------------------------------------------------------------------------------------

    def obtain(self, size: int, align: int = 1) -> int:
        """Take a chunk from the backing allocator."""
        if self.limit is not None and self.held_bytes + size > self.limit:
            raise NoMemory
        address = self.heap.allocate(size, align)
        self.chunks[address] = self.heap.held[address]
        self.held_bytes += self.heap.held[address]
        return address

    def give_back(self, address: int) -> None:
        self.held_bytes -= self.chunks.pop(address)
        self.heap.free(address)

    def guard(self, area: Area, uses: list[Use]) -> list[Event]:
        """Return what the area's memory has to wait for: its uses, and what it was ordered behind itself."""
        events = list(area.guards)
        if any(not use.stream.alive for use in uses):  # nothing can be recorded there any more
            for device in sorted({use.stream.device for use in uses}):
                self.machine.own_synchronize_device(device)
            return events
        events += [self.machine.own_event(use.stream) for use in uses]
        return events

    def keep(self, events: list[Event]) -> list[Event]:
        """Count one more holder for each event."""
        for event in events:
            self.events[event] = self.events.get(event, 0) + 1
        return events

    def drop(self, event: Event) -> None:
        """Count one holder less; the last one destroys it."""
        self.events[event] = self.events.get(event, 1) - 1
        if not self.events[event]:
            del self.events[event]
            self.machine.own_destroy(event)

    def wait_for(self, area: Area, stream: Stream) -> None:
        """Order ``stream`` (or the host) behind the area's guards; those that are not done stay with it."""
        for event in list(area.guards):
            if self.host and not self.machine.own_query(event):
                self.machine.own_host_wait(event)
            elif not self.host and event.stream is not stream and not self.machine.own_query(event):
                self.order(stream, event)
        self.is_idle(area)

    def order(self, stream: Stream, event: Event) -> None:
        if event.stream is None or event.stream.alive:
            self.machine.own_wait(stream, event)
        else:
            self.machine.own_host_wait(event)

    def is_idle(self, area: Area) -> bool:
        """Whether the area's guards are done; those that are get dropped."""
        kept = []
        for event in area.guards:
            if self.machine.own_query(event):
                self.drop(event)
            else:
                kept.append(event)
        area.guards = kept
        return not kept

    def force_idle(self, area: Area) -> None:
        for event in area.guards:
            self.machine.own_host_wait(event)
            self.drop(event)
        area.guards = []


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
