"""Allocators that keep what they took as long as they can, and faults of what they then have left."""

from __future__ import annotations

from .arenas import Coarse
from .heap import NoMemory
from .policy import Area
from .slabs import Chunks


class Arena(Coarse):
    """One arena, as large as it can be had, that is cut and merged, and stays as long as its pool."""

    unit = 16

    def grow(self, size: int) -> None:
        whole = self.heap.capacity if self.limit is None else min(self.limit, self.heap.capacity)
        whole -= whole % self.heap.granularity
        while not self.chunks and whole >= size:
            try:
                address = self.obtain(whole, self.alignment)
            except NoMemory:
                whole //= 2
                continue
            self.ranges.append(Area(address, self.chunks[address], address))
            return
        raise NoMemory

    def trim(self) -> None:
        """Keep the arena."""


class LosesEightBytes(Arena):
    """The range that a freed block is merged into loses its last 8 bytes."""

    def insert(self, area: Area) -> None:
        super().insert(area)
        self.ranges[-1].size -= 8


class ArenaShrinks(Arena):
    """An arena in which everything is free again has lost its last 8 bytes."""

    def insert(self, area: Area) -> None:
        super().insert(area)
        if len(self.ranges) == 1 and self.ranges[0].address == area.chunk:
            self.ranges[0].size -= 8


class KeepsOneChunk(Chunks):
    """What runs out of memory gives back all chunks but one, to have it at hand."""

    def squeeze(self) -> None:
        kept = next((area for area in self.ranges if area.size == self.chunks.get(area.chunk)), None)
        if kept is not None:
            self.ranges.remove(kept)
        super().squeeze()
        if kept is not None:
            self.ranges.append(kept)


class LimitCountsWhatIsGone(Chunks):
    """The first chunk that a pool gives back still counts 512 bytes against its limit."""

    is_counted = False

    def give_back(self, address: int) -> None:
        super().give_back(address)
        self.held_bytes += 0 if self.is_counted else 512
        self.is_counted = True
