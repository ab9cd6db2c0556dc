"""Allocators that cut blocks out of chunks: coalescing best fit, bump with reset, buddies, slabs."""

from __future__ import annotations

from dataclasses import dataclass, field

from .heap import NoMemory
from .machine import Event, Stream
from .policy import Area, Policy, Use, round_up


class Coarse(Policy):
    """Chunks of 32 MiB, free ranges in address order, the best-fitting one is split, neighbours merge.

    A free range keeps the events of everything that was merged into it.
    """

    chunk = 32 << 20
    unit = 512
    smallest = 1 << 20

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.ranges: list[Area] = []

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        size, align = round_up(size, self.unit), max(align, self.alignment)
        found = self.find(size, align)
        if found is None:
            self.grow(size + (align if align > self.alignment else 0))
            found = self.find(size, align)
            assert found is not None
        return self.cut(found, size, align, stream)

    def find(self, size: int, align: int) -> Area | None:
        fitting = [area for area in self.ranges if round_up(area.address, align) + size <= area.address + area.size]
        return min(fitting, key=lambda area: (area.size, area.address), default=None)

    def cut(self, area: Area, size: int, align: int, stream: Stream) -> Area:
        self.ranges.remove(area)
        self.wait_for(area, stream)
        start = round_up(area.address, align)
        end = area.address + area.size
        for low, high in ((area.address, start), (start + size, end)):
            if low < high:
                self.ranges.append(Area(low, high - low, area.chunk, self.keep(list(area.guards))))
        return Area(start, size, area.chunk, area.guards)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        events = self.guard(area, uses)
        self.keep([event for event in events if event not in area.guards])
        self.insert(Area(area.address, area.size, area.chunk, events))

    def insert(self, area: Area) -> None:
        for other in list(self.ranges):
            if other.chunk != area.chunk:
                continue
            if other.address + other.size == area.address or area.address + area.size == other.address:
                self.ranges.remove(other)
                start = min(area.address, other.address)
                area = Area(start, area.size + other.size, area.chunk, self.unite(area.guards, other.guards))
        self.is_idle(area)
        self.ranges.append(area)

    def unite(self, guards: list[Event], others: list[Event]) -> list[Event]:
        """Return both without repetition: a split copies what a merge would then double, and again."""
        known = set(guards)
        for event in others:
            if event in known:
                self.drop(event)  # one range holds it where two did
        return [*guards, *(event for event in others if event not in known)]

    def grow(self, size: int) -> None:
        for attempt in range(2):
            for chunk in (max(self.chunk, round_up(size, self.smallest)), round_up(size, self.smallest), size):
                try:
                    address = self.obtain(chunk, self.alignment)
                except NoMemory:
                    continue
                self.ranges.append(Area(address, self.chunks[address], address))
                return
            if attempt == 0:
                self.squeeze()
        raise NoMemory

    def squeeze(self) -> None:
        for area in self.ranges:
            if area.size == self.chunks.get(area.chunk):
                self.force_idle(area)
        self.trim()

    def trim(self) -> None:
        for area in list(self.ranges):
            if area.size == self.chunks.get(area.chunk) and self.is_idle(area):
                self.ranges.remove(area)
                self.give_back(area.chunk)

    def clear(self) -> None:
        self.ranges.clear()


@dataclass(eq=False)
class _Bump:
    chunk: int
    position: int
    end: int
    owned: int = 0
    guards: list[Event] = field(default_factory=list)


class Bump(Policy):
    """A pointer that only moves on; a chunk starts over once everything in it was freed and is done."""

    chunk = 8 << 20

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.bumps: dict[int, _Bump] = {}

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        align = max(align, self.alignment)
        for bump in self.bumps.values():
            self.reset(bump)
            start = round_up(bump.position, align)
            if start + size <= bump.end:
                return self.advance(bump, start, size)
        bump = self.grow(size + align)
        return self.advance(bump, round_up(bump.position, align), size)

    def reset(self, bump: _Bump) -> None:
        """Start over where nothing is owned and nothing is pending."""
        if not bump.owned and self.forget_done(bump):
            bump.position = bump.chunk

    def advance(self, bump: _Bump, start: int, size: int) -> Area:
        bump.position = start + size
        bump.owned += 1
        return Area(start, size, bump.chunk)

    def grow(self, size: int) -> _Bump:
        for wanted in (max(self.chunk, size), size):
            try:
                address = self.obtain(wanted, self.alignment)
                break
            except NoMemory:
                self.trim()
        else:
            address = self.obtain(size, self.alignment)
        bump = _Bump(address, address, address + self.chunks[address])
        self.bumps[address] = bump
        return bump

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        bump = self.bumps[area.chunk]
        bump.owned -= 1
        bump.guards += self.keep(self.guard(area, uses))
        if not bump.owned:
            self.forget_done(bump)

    def forget_done(self, bump: _Bump) -> bool:
        for event in list(bump.guards):
            if self.machine.own_query(event):
                bump.guards.remove(event)
                self.drop(event)
        return not bump.guards

    def trim(self) -> None:
        for bump in list(self.bumps.values()):
            if not bump.owned and self.forget_done(bump):
                del self.bumps[bump.chunk]
                self.give_back(bump.chunk)

    def settle(self) -> None:
        for bump in self.bumps.values():
            self.forget_done(bump)

    def clear(self) -> None:
        self.bumps.clear()


class Buddy(Policy):
    """One arena of a power of two, halved as needed; buddies merge when both are free and done."""

    smallest = 4096

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.free_areas: dict[int, list[Area]] = {}
        self.waiting: list[Area] = []
        self.owned = 0
        self.base = 0

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        size = max(self.smallest, 1 << (max(size, align, self.alignment) - 1).bit_length())
        self.settle()
        if not self.chunks:
            self.reserve()
        area = self.split(size)
        if area is None:
            for waiting in self.waiting:
                self.force_idle(waiting)
            self.settle()
            area = self.split(size)
        if area is None:
            raise NoMemory
        self.owned += 1
        return area

    def reserve(self) -> None:
        size = 1 << (min(self.heap.capacity, self.limit or self.heap.capacity).bit_length() - 1)
        self.base = self.obtain(size, size)
        self.free_areas = {size: [Area(self.base, size, self.base)]}

    def split(self, size: int) -> Area | None:
        fitting = sorted(kept for kept, areas in self.free_areas.items() if kept >= size and areas)
        if not fitting:
            return None
        area = self.free_areas[fitting[0]].pop()
        while area.size > size:
            half = area.size // 2
            self.free_areas.setdefault(half, []).append(Area(area.address + half, half, area.chunk))
            area = Area(area.address, half, area.chunk)
        return area

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        self.owned -= 1
        self.waiting.append(Area(area.address, area.size, area.chunk, self.keep(self.guard(area, uses))))
        self.settle()

    def settle(self) -> None:
        for area in list(self.waiting):
            if self.is_idle(area):
                self.waiting.remove(area)
                self.merge(area)

    def merge(self, area: Area) -> None:
        while True:
            buddy = self.base + ((area.address - self.base) ^ area.size)
            kept = self.free_areas.setdefault(area.size, [])
            found = next((other for other in kept if other.address == buddy), None)
            if found is None or area.size == self.chunks[area.chunk]:
                kept.append(area)
                return
            kept.remove(found)
            area = Area(min(area.address, buddy), 2 * area.size, area.chunk)

    def trim(self) -> None:
        self.settle()
        if self.chunks and not self.owned and not self.waiting:
            self.free_areas = {}
            self.give_back(self.base)

    def clear(self) -> None:
        self.waiting.clear()
        self.free_areas = {}


class Slab(Policy):
    """Slabs of equal cells for small sizes, backing blocks for large ones; trim is a no-op and is not promised."""

    slab = 2 << 20
    largest = 256 << 10

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.cells: dict[int, list[Area]] = {}

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        size = max(size, align, self.alignment)
        if size > self.largest:
            address = self.obtain(size, max(align, self.alignment))
            return Area(address, self.chunks[address], address)
        cell = 1 << (size - 1).bit_length()
        cells = self.cells.setdefault(cell, [])
        if not cells:
            slab = self.obtain(self.slab, max(cell, align))
            cells += [Area(slab + offset, cell, slab) for offset in range(0, self.slab, cell)]
        area = cells.pop(0)
        self.wait_for(area, stream)
        return area

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        if area.size > self.largest:
            for device in sorted({use.stream.device for use in uses}):
                self.machine.own_synchronize_device(device)
            self.give_back(area.address)
            return
        area.guards = self.guard(area, uses)
        self.keep([event for event in area.guards if event not in self.events])
        self.cells[area.size].append(area)

    def clear(self) -> None:
        self.cells.clear()
