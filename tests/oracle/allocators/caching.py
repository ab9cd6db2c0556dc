"""Allocators that keep whole blocks: size classes, lists by size, newest first."""

from __future__ import annotations

from .heap import NoMemory
from .machine import Stream
from .policy import Area, Policy, Use, round_up


class PowersOfTwo(Policy):
    """One backing allocation for each block, rounded up to a power of two; freed ones wait in a list of their size."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.cached: dict[int, list[Area]] = {}

    def footprint(self, size: int) -> int:
        return max(self.heap.granularity, 1 << (size - 1).bit_length())

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        size = self.footprint(size)
        area = self.find(size, max(align, self.alignment), stream) or self.fresh(size, max(align, self.alignment))
        self.wait_for(area, stream)
        area.stream = stream
        return area

    def find(self, size: int, align: int, stream: Stream) -> Area | None:
        entries = self.cached.get(size, [])
        own = [index for index, area in enumerate(entries) if area.stream is stream and area.address % align == 0]
        other = [index for index, area in enumerate(entries) if area.address % align == 0]
        chosen = own or other
        return entries.pop(chosen[-1]) if chosen else None

    def fresh(self, size: int, align: int) -> Area:
        try:
            address = self.obtain(size, align)
        except NoMemory:
            self.squeeze()
            address = self.obtain(size, align)
        return Area(address, self.chunks[address], address)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        area.guards = self.guard(area, uses)
        self.keep([event for event in area.guards if event not in self.events])
        area.stream = stream
        self.cached.setdefault(area.size, []).append(area)

    def squeeze(self) -> None:
        for area in [area for entries in self.cached.values() for area in entries]:
            self.force_idle(area)
        self.trim()

    def trim(self) -> None:
        for entries in self.cached.values():
            for area in list(entries):
                if self.is_idle(area):
                    entries.remove(area)
                    self.give_back(area.address)

    def clear(self) -> None:
        self.cached.clear()


class HugePages(PowersOfTwo):
    """Every block takes whole 2 MiB pages."""

    def footprint(self, size: int) -> int:
        return round_up(size, 2 << 20)


class Exact(PowersOfTwo):
    """Every block takes its size, rounded to the granularity; a freed one serves its own size only."""

    def footprint(self, size: int) -> int:
        return round_up(size, self.heap.granularity)


class BestFit(Exact):
    """The smallest kept block that is large enough serves a request, whole, down to half of its size."""

    def find(self, size: int, align: int, stream: Stream) -> Area | None:
        for kept in sorted(each for each in self.cached if size <= each <= 2 * size):
            if (area := super().find(kept, align, stream)) is not None:
                return area
        return None


class Direct(Policy):
    """Nothing is kept: a free waits for the block's work, as ``cudaFree`` does, and releases it at once."""

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        address = self.obtain(round_up(size, self.heap.granularity), max(align, self.alignment))
        return Area(address, self.chunks[address], address)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        for device in sorted({use.stream.device for use in uses}):
            self.machine.own_synchronize_device(device)
        self.give_back(area.address)


class Polling(Policy):
    """Stream-ordered without waits: a freed block waits in a queue until its events say done; then it is kept.

    Frees are settled lazily: once ``backlog`` of them are waiting, or when memory runs out.
    """

    backlog = 16

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.queue: list[Area] = []
        self.kept: list[Area] = []

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        size, align = round_up(size, self.heap.granularity), max(align, self.alignment)
        if len(self.queue) >= self.backlog:
            self.poll()
        for area in self.kept:
            if area.size == size and area.address % align == 0:
                self.kept.remove(area)
                return area
        try:
            address = self.obtain(size, align)
        except NoMemory:
            self.trim()
            address = self.obtain(size, align)
        return Area(address, self.chunks[address], address)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        area.guards = self.keep(self.guard(area, uses))
        self.queue.append(area)

    def poll(self) -> None:
        for area in list(self.queue):
            if self.is_idle(area):
                self.queue.remove(area)
                self.kept.append(area)

    def trim(self) -> None:
        self.poll()
        while self.kept:
            self.give_back(self.kept.pop().address)

    def clear(self) -> None:
        self.queue.clear()
        self.kept.clear()
