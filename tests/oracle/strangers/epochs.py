"""Regions that are filled once, and reclaimed when the epoch in which they emptied is over on every queue."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .device import Marker, NoRoom, Queue
from .pool import Piece, Pool, round_up


@dataclass(eq=False, slots=True)
class Region:
    """A region and how far it is filled; ``emptied`` is the epoch in which its last piece went."""

    address: int
    end: int
    next_address: int
    owned: int = 0
    emptied: int | None = None


@dataclass(eq=False, slots=True)
class Epoch:
    """Frees between two moments; closing it puts a marker on every queue that they depend on."""

    number: int
    queues: dict[Queue, None] = field(default_factory=dict)
    markers: list[Marker] = field(default_factory=list)
    is_closed: bool = False


class EpochRegions(Pool):
    """No piece is used again by itself: a region starts over when all of it is free and its epoch has passed."""

    region = 4 << 20
    length = 24
    """Frees in an epoch."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.regions: dict[int, Region] = {}
        self.epochs: list[Epoch] = [Epoch(0)]
        self.frees = 0

    @property
    def current(self) -> Epoch:
        return self.epochs[-1]

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        align = max(align, self.unit)
        for region in self.regions.values():
            self.start_over(region)
            address = round_up(region.next_address, align)
            if address + size <= region.end:
                return self.advance(region, address, size, queue)
        region = self.grow(size + align)
        return self.advance(region, round_up(region.next_address, align), size, queue)

    def start_over(self, region: Region) -> None:
        if region.owned == 0 and region.emptied is not None and self.has_passed(region.emptied):
            region.next_address, region.emptied = region.address, None

    def advance(self, region: Region, address: int, size: int, queue: Queue) -> Piece:
        region.next_address = address + size
        region.owned += 1
        region.emptied = None
        return Piece(address, size, region.address, queue)

    def grow(self, size: int) -> Region:
        for attempt in range(2):
            for wanted in (max(self.region, size), size):
                try:
                    address = self.take(wanted, self.unit)
                except NoRoom:
                    continue
                region = self.regions[address] = Region(address, address + self.chunks[address], address)
                return region
            if attempt == 0:
                self.squeeze()
        raise NoRoom

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        for each in (piece.queue, queue, *touched):
            if each.is_alive:
                self.current.queues[each] = None
        self.current.markers += piece.behind
        piece.behind = []
        region = self.regions[piece.chunk]
        region.owned -= 1
        if not region.owned:
            region.emptied = self.current.number
        self.frees += 1
        if self.frees % self.length == 0:
            self.turn()

    def turn(self) -> None:
        """Close the epoch and begin the next."""
        epoch = self.current
        epoch.markers += [self.runtime.record(queue) for queue in epoch.queues]
        epoch.is_closed = True
        self.epochs.append(Epoch(epoch.number + 1))

    def has_passed(self, number: int) -> bool:
        """Whether an epoch and all before it are over: a piece of the region may have gone in any of them."""
        while self.epochs[0].is_closed:
            epoch = self.epochs[0]
            pending = []
            for marker in epoch.markers:
                if self.runtime.ask(marker):
                    self.runtime.retire(marker)
                else:
                    pending.append(marker)
            epoch.markers = pending
            if pending:
                break
            self.epochs.pop(0)
        return number < self.epochs[0].number

    def queue_is_going(self, queue: Queue) -> None:
        if queue in self.current.queues:
            self.turn()

    def squeeze(self) -> None:
        self.turn()
        for epoch in self.epochs:
            for marker in epoch.markers:
                if not self.runtime.ask(marker):
                    self.runtime.await_here(marker)
        self.trim()

    def trim(self) -> None:
        if self.current.queues or self.current.markers:
            self.turn()
        for region in list(self.regions.values()):
            if region.owned == 0 and (region.emptied is None or self.has_passed(region.emptied)):
                if region.emptied is None and region.next_address != region.address:
                    continue
                del self.regions[region.address]
                self.drop(region.address)

    def forget(self) -> None:
        for epoch in self.epochs:
            for marker in epoch.markers:
                self.runtime.retire(marker)
        self.regions.clear()
        self.epochs = [Epoch(0)]
