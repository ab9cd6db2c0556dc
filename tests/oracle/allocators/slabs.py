"""Slabs that count their owned cells and go back when they have none, in eight size classes for each power of two."""

from __future__ import annotations

from dataclasses import dataclass, field

from .arenas import Coarse
from .heap import NoMemory
from .machine import Stream
from .policy import Area, Policy, Use, round_up


@dataclass(eq=False)
class Slab:
    address: int
    cell: int
    unused: int
    """Where the cells begin that were never handed out."""
    owned: int = 0
    cells: list[Area] = field(default_factory=list)
    """The free cells."""


class CountedSlabs(Policy):
    """Slabs of equal cells; a large request has a backing allocation to itself."""

    slab = 2 << 20
    largest = 1 << 20

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.slabs: dict[int, list[Slab]] = {}
        self.at: dict[int, Slab] = {}
        self.large: list[Area] = []

    def cell_for(self, size: int) -> int:
        step = max(self.alignment, 1 << max(0, (size - 1).bit_length() - 4))
        return round_up(size, step)

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        if size > self.largest or align > self.alignment:
            return self.allocate_large(round_up(size, self.heap.granularity), max(align, self.alignment), stream)
        cell = self.cell_for(size)
        slab = next((each for each in self.slabs.get(cell, []) if each.cells or self.has_room(each)), None)
        if slab is None:
            slab = self.new_slab(cell)
        slab.owned += 1
        if slab.cells:
            area = slab.cells.pop()
            self.wait_for(area, stream)
            return area
        area = Area(slab.unused, cell, slab.address)
        slab.unused += self.stride(cell)
        return area

    def stride(self, cell: int) -> int:
        """Return how far one cell begins behind the one before."""
        return cell

    def has_room(self, slab: Slab) -> bool:
        return slab.unused + slab.cell <= slab.address + self.slab

    def allocate_large(self, size: int, align: int, stream: Stream) -> Area:
        for area in self.large:
            if area.size == size and area.address % align == 0:
                self.large.remove(area)
                self.wait_for(area, stream)
                return area
        address = self.obtain_or_squeeze(size, align)
        return Area(address, self.chunks[address], address)

    def new_slab(self, cell: int) -> Slab:
        address = self.obtain_or_squeeze(self.slab, self.alignment)
        slab = self.at[address] = Slab(address, cell, address)
        self.slabs.setdefault(cell, []).append(slab)
        return slab

    def obtain_or_squeeze(self, size: int, align: int) -> int:
        try:
            return self.obtain(size, align)
        except NoMemory:
            self.squeeze()
            return self.obtain(size, align)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        area.guards = self.guard(area, uses)
        self.keep([event for event in area.guards if event not in self.events])
        slab = self.at.get(area.chunk)
        if slab is None:
            self.large.append(area)
        else:
            slab.owned -= 1
            slab.cells.append(area)

    def squeeze(self) -> None:
        for area in [*self.large, *(area for slab in self.at.values() if not slab.owned for area in slab.cells)]:
            self.force_idle(area)
        self.trim()

    def trim(self) -> None:
        for area in [area for area in self.large if self.is_idle(area)]:
            self.large.remove(area)
            self.give_back(area.address)
        for slab in self.empty_slabs():
            del self.at[slab.address]
            self.slabs[slab.cell].remove(slab)
            self.give_back(slab.address)

    def is_idle_slab(self, slab: Slab) -> bool:
        busy = [area for area in slab.cells if not self.is_idle(area)]
        return not busy

    def empty_slabs(self) -> list[Slab]:
        slabs = [slab for slab in self.at.values() if not slab.owned]
        return [slab for slab in slabs if self.is_idle_slab(slab)]

    def clear(self) -> None:
        self.slabs.clear()
        self.at.clear()
        self.large.clear()


class Chunks(Coarse):
    """Chunks of 8 MiB, or of what a larger request needs, that are split."""

    chunk = 8 << 20
