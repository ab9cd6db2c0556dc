"""A heap that allocators draw on: address ranges, a capacity, a granularity, and a call that can be made to fail."""

from __future__ import annotations

import enum
from bisect import insort

from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, Observation
from quiesce.model.operations import InjectedError, MemoryKind


class NoMemory(Exception):
    """A request does not fit."""


class ForeignError(Exception):
    """A call below failed for another reason."""


class Placement(enum.Enum):
    """Where a heap puts what it hands out."""

    LOWEST = "lowest"
    HIGHEST = "highest"
    NEVER_AGAIN = "never again"


class Injection:
    """One armed failure, shared by every heap of a context."""

    def __init__(self) -> None:
        self.remaining = 0
        self.error = InjectedError.OUT_OF_MEMORY

    def arm(self, nth: int, error: InjectedError) -> None:
        self.remaining, self.error = nth, error

    def meet(self) -> None:
        if self.remaining:
            self.remaining -= 1
            if not self.remaining:
                raise NoMemory if self.error is InjectedError.OUT_OF_MEMORY else ForeignError


class Heap:
    """Ranges of ``[base, base + capacity)``; with ``NEVER_AGAIN`` only bytes are limited, addresses go on for ever."""

    def __init__(
        self,
        base: int,
        capacity: int,
        granularity: int,
        kind: MemoryKind,
        device: int,
        log: list[Observation],
        injection: Injection,
        placement: Placement = Placement.LOWEST,
    ) -> None:
        self.kind, self.device, self.granularity, self.capacity = kind, device, granularity, capacity
        self.held: dict[int, int] = {}
        self.held_bytes = 0
        self.calls = 0
        self._log, self._injection, self._placement = log, injection, placement
        self._holes: list[tuple[int, int]] = [(base, base + capacity)]
        self._next = base

    def allocate(self, size: int, align: int = 1) -> int:
        size = -(-size // self.granularity) * self.granularity
        self.calls += 1
        try:
            self._injection.meet()
            address = self._place(size, max(align, self.granularity))
        except (NoMemory, ForeignError):
            self._log.append(BackingRefused(min(size, (1 << 64) - 1), self.kind, self.device))
            raise
        self.held[address] = size
        self.held_bytes += size
        self._log.append(BackingAllocated(address, size, self.kind, self.device))
        return address

    def _place(self, size: int, align: int) -> int:
        if self.held_bytes + size > self.capacity:
            raise NoMemory
        if self._placement is Placement.NEVER_AGAIN:
            address = -(-self._next // align) * align
            self._next = address + size + self.granularity
            return address
        highest = self._placement is Placement.HIGHEST
        for index in range(len(self._holes) - 1, -1, -1) if highest else range(len(self._holes)):
            start, end = self._holes[index]
            address = (end - size) // align * align if highest else -(-start // align) * align
            if address < start or address + size > end:
                continue
            self._holes[index : index + 1] = [
                hole for hole in ((start, address), (address + size, end)) if hole[0] < hole[1]
            ]
            return address
        raise NoMemory

    def free(self, address: int) -> None:
        size = self.held.pop(address)
        self.held_bytes -= size
        self.calls += 1
        self._log.append(BackingFreed(address, size, self.kind, self.device))
        if self._placement is Placement.NEVER_AGAIN:
            return
        insort(self._holes, (address, address + size))
        merged: list[tuple[int, int]] = []
        for start, end in self._holes:
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        self._holes = merged
