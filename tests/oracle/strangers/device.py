"""A device as a runtime shows it: queues of numbered work, markers in them, and memory that runs out.

Nothing here takes time. The n-th work of a queue is done once nothing in front of it is held up, which is found out
when somebody asks. What a library does for itself is told in ``log``; what the sequence asks for is not.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
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
from quiesce.model.operations import InjectedError, MemoryKind


class NoRoom(Exception):
    """There is no memory left."""


class Broken(Exception):
    """A call failed, and not for lack of memory."""


class Gate:
    """What holds a queue up until it is opened."""

    __slots__ = ("is_open",)

    def __init__(self) -> None:
        self.is_open = False


class Point(NamedTuple):
    """The n-th work of a queue."""

    queue: Queue
    number: int

    @property
    def is_done(self) -> bool:
        return self.queue.has_passed(self.number)


class Queue:
    """Work in order. ``""`` is the default one; it and every blocking one wait for each other."""

    def __init__(self, name: str, device: int, *, blocking: bool = True) -> None:
        self.name, self.device, self.blocking = name, device, blocking
        self.is_alive = True
        self.gate: Gate | None = None
        self.issued = 0
        self._obstacles: deque[tuple[int, Gate | Point]] = deque()

    @property
    def last(self) -> Point:
        return Point(self, self.issued)

    def issue(self, *behind: Point) -> Point:
        """Put work at the end."""
        self.issued += 1
        self._obstacles.extend((self.issued, point) for point in behind if not point.is_done)
        return self.last

    def hold(self, gate: Gate) -> None:
        """Hold up the last work."""
        self._obstacles.append((self.issued, gate))

    def stall(self) -> None:
        if self.gate is None or self.gate.is_open:
            self.gate = Gate()
            self._obstacles.append((self.issued + 1, self.gate))

    def release(self) -> None:
        if self.gate is not None:
            self.gate.is_open = True

    def has_passed(self, number: int) -> bool:
        while self._obstacles:
            held, obstacle = self._obstacles[0]
            if number < held:
                return True
            if not (obstacle.is_open if isinstance(obstacle, Gate) else obstacle.is_done):
                return False
            self._obstacles.popleft()
        return True

    def force(self, number: int) -> None:
        """Wait for the n-th work; whatever holds it up ends."""
        while not self.has_passed(number):
            obstacle = self._obstacles[0][1]
            if isinstance(obstacle, Gate):
                obstacle.is_open = True
            else:
                obstacle.queue.force(obstacle.number)


@dataclass(eq=False, slots=True)
class Marker:
    """A handle that a library put behind a queue's work; it goes when its last holder does."""

    name: str
    point: Point
    holders: int = 1


class Failures:
    """The n-th call from now fails once."""

    def __init__(self) -> None:
        self._left, self._error = 0, InjectedError.OUT_OF_MEMORY

    def arm(self, nth: int, error: InjectedError) -> None:
        self._left, self._error = nth, error

    def happen(self) -> None:
        self._left = max(0, self._left - 1) if self._left != 1 else self._fail()

    def _fail(self) -> int:
        self._left = 0
        raise NoRoom if self._error is InjectedError.OUT_OF_MEMORY else Broken


class Store:
    """The memory of one kind on one device, given out next fit."""

    def __init__(self, runtime: Runtime, kind: MemoryKind, device: int, capacity: int, granule: int) -> None:
        base = (1 + list(MemoryKind).index(kind)) << 44 | device << 42
        self.kind, self.device, self.granule = kind, device, granule
        self.held: dict[int, int] = {}
        self.used = 0
        self._runtime = runtime
        self._capacity = capacity
        self._holes: list[tuple[int, int]] = [(base, base + capacity)]
        self._rover = base
        self._reserved = base | 1 << 50

    def take(self, size: int, align: int = 1) -> int:
        size = -(-size // self.granule) * self.granule
        return self._obtain(size, lambda: self._carve(size, max(align, self.granule)))

    def _obtain(self, size: int, place: Callable[[], int]) -> int:
        self._runtime.calls += 1
        try:
            self._runtime.failures.happen()
            address = place()
        except (NoRoom, Broken):
            self._runtime.log.append(BackingRefused(min(size, (1 << 64) - 1), self.kind, self.device))
            raise
        self.held[address] = size
        self.used += size
        self._runtime.log.append(BackingAllocated(address, size, self.kind, self.device))
        return address

    def _carve(self, size: int, align: int) -> int:
        count = len(self._holes)
        first = bisect_left(self._holes, (self._rover, 0))
        for index in itertools.chain(range(first, count), range(first)):
            start, end = self._holes[index]
            address = -(-start // align) * align
            if address + size <= end:
                pieces = ((start, address), (address + size, end))
                self._holes[index : index + 1] = [(low, high) for low, high in pieces if low < high]
                self._rover = address + size
                return address
        raise NoRoom

    def reserve(self, size: int) -> int:
        """Return addresses that nothing is behind."""
        self._reserved += size
        return self._reserved - size

    def back(self, address: int, size: int) -> None:
        """Put memory behind addresses that were reserved."""

        def place() -> int:
            if self.used + size > self._capacity:
                raise NoRoom
            return address

        self._obtain(size, place)

    def unback(self, address: int) -> int:
        """Take away what is behind an address, and return how much that was."""
        size = self.held.pop(address)
        self.used -= size
        self._runtime.calls += 1
        self._runtime.log.append(BackingFreed(address, size, self.kind, self.device))
        return size

    def give(self, address: int) -> None:
        start, end = address, address + self.unback(address)
        index = bisect_left(self._holes, (start, end))
        if index < len(self._holes) and self._holes[index][0] == end:
            end = self._holes.pop(index)[1]
        if index and self._holes[index - 1][1] == start:
            start = self._holes.pop(index - 1)[0]
            index -= 1
        self._holes.insert(index, (start, end))


class Runtime:
    """Queues, markers and stores of all devices, and what a library did with them."""

    def __init__(self, devices: int, *, spares: bool, legacy: bool) -> None:
        self.defaults = [Queue("", device) for device in range(devices)]
        self.queues: list[Queue] = list(self.defaults)
        self.failures = Failures()
        self.calls = 0
        self.log: list[Observation] = []
        self.markers = 0
        self._keeps_spares, self._legacy = spares, legacy
        self._spares: list[str] = []
        self._names = itertools.count()

    # -- what the sequence asks for --------------------------------------------------------------------------------

    def issue(self, queue: Queue, *behind: Point) -> Point:
        """Put work on a queue, in the order that the default queue makes."""
        if not (self._legacy and queue.blocking):
            return queue.issue(*behind)
        default = self.defaults[queue.device]
        if queue is not default:
            return queue.issue(*behind, default.last)
        others = (q.last for q in self.queues if q.device == queue.device and q.blocking and q is not queue)
        return queue.issue(*behind, *others)

    def synchronize(self, queue: Queue) -> None:
        self.issue(queue).queue.force(queue.issued)
        queue.release()

    def synchronize_device(self, device: int) -> None:
        for queue in list(self.queues):
            if queue.device == device:
                queue.force(queue.issued)
                queue.release()
                if not queue.is_alive:
                    self.queues.remove(queue)

    # -- what a library does ---------------------------------------------------------------------------------------

    def record(self, queue: Queue) -> Marker:
        if self._spares:
            name = self._spares.pop()
        else:
            name = f"lib/{next(self._names)}"
            self.markers += 1
            self.log.append(HandleCreated(HandleKind.EVENT, name))
        self.log.append(EventRecorded(name, queue.name))
        return Marker(name, self.issue(queue))

    def wait(self, queue: Queue, marker: Marker) -> None:
        self.issue(queue, marker.point)
        self.log.append(EventWaited(marker.name, queue.name, marker.point.queue.is_alive))

    def ask(self, marker: Marker) -> bool:
        done = marker.point.is_done
        if done:
            self.log.append(EventCompleted(marker.name))
        return done

    def await_here(self, marker: Marker) -> None:
        marker.point.queue.force(marker.point.number)
        self.log.append(EventWaited(marker.name, None, marker.point.queue.is_alive))

    def retire(self, marker: Marker) -> None:
        """Give up one hold on a marker."""
        marker.holders -= 1
        if marker.holders:
            return
        if self._keeps_spares:
            self._spares.append(marker.name)
        else:
            self._destroy(marker.name)

    def destroy_spares(self) -> None:
        while self._spares:
            self._destroy(self._spares.pop())

    def _destroy(self, name: str) -> None:
        self.markers -= 1
        self.log.append(HandleDestroyed(HandleKind.EVENT, name))

    def drain(self, queue: Queue) -> None:
        self.synchronize(queue)
        self.log.append(StreamSynchronized(queue.name))

    def drain_device(self, device: int) -> None:
        self.synchronize_device(device)
        self.log.append(DeviceSynchronized(device))
