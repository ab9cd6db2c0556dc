"""Faults of keeping: memory that is lost, stays where it should go back, or is not asked for when it runs out."""

from __future__ import annotations

from .arenas import Coarse
from .caching import BestFit, Exact, Polling, PowersOfTwo
from .faulty_chunks import TriesInTurn
from .heap import NoMemory
from .machine import Stream
from .policy import Area, round_up
from .unusual import Doubling


class KeepsOneOfSixteen(Coarse):
    """A trim leaves the first of every sixteen idle chunks."""

    def trim(self) -> None:
        idle = [area for area in self.ranges if area.size == self.chunks.get(area.chunk) and self.is_idle(area)]
        for number, area in enumerate(idle):
            if number % 16:
                self.ranges.remove(area)
                self.give_back(area.chunk)


class LosesTheTail(Coarse):
    """What is left of a range that was cut is dropped where it is small."""

    def cut(self, area: Area, size: int, align: int, stream: Stream) -> Area:
        taken = super().cut(area, size, align, stream)
        self.ranges = [kept for kept in self.ranges if kept.size >= 64 << 10]
        return taken


class MergesAcrossChunks(Coarse):
    """Neighbours merge where one chunk ends and another begins."""

    def insert(self, area: Area) -> None:
        for other in list(self.ranges):
            if other.address + other.size == area.address or area.address + area.size == other.address:
                self.ranges.remove(other)
                low = min(area, other, key=lambda each: each.address)
                area = Area(low.address, area.size + other.size, low.chunk, self.unite(area.guards, other.guards))
        self.is_idle(area)
        self.ranges.append(area)


class ReleasesUsualChunks(Coarse):
    """A pool that is destroyed gives back its chunks of the usual size, and forgets the oversized ones."""

    def release(self) -> None:
        for address, size in list(self.chunks.items()):
            if size != self.chunk:
                del self.chunks[address]
        super().release()


class ReleasesItsOwnStream(PowersOfTwo):
    """A pool that is destroyed forgets the lists of every stream but the default one."""

    def release(self) -> None:
        for area in [area for entries in self.cached.values() for area in entries]:
            if area.stream is not None and area.stream.name:
                del self.chunks[area.address]
        super().release()


class PinnedNeverShrinks(PowersOfTwo):
    """Pinned memory is kept whatever is asked."""

    def trim(self) -> None:
        if not self.host:
            super().trim()


class StopsAtTheFirstPending(Polling):
    """The queue of freed blocks is settled in order, up to the first that is not done."""

    def poll(self) -> None:
        while self.queue and self.is_idle(self.queue[0]):
            self.kept.append(self.queue.pop(0))


class NeverSqueezes(BestFit):
    """Out of memory is passed on at once, with the cache full."""

    def squeeze(self) -> None:
        pass


class SqueezesTheLargeOnly(PowersOfTwo):
    """When memory runs out, only one cached block that is large enough by itself goes back."""

    def fresh(self, size: int, align: int) -> Area:
        try:
            return Area(address := self.obtain(size, align), self.chunks[address], address)
        except NoMemory:
            for kept in sorted(self.cached):
                if kept >= size and self.cached[kept]:
                    area = self.cached[kept].pop()
                    self.force_idle(area)
                    self.give_back(area.address)
                    return Area(address := self.obtain(size, align), self.chunks[address], address)
            raise


class SqueezesTheIdleOnly(PowersOfTwo):
    """When memory runs out, what is in flight is not waited for, and stays."""

    def squeeze(self) -> None:
        self.trim()


class CachedCountsAgainstTheLimit(PowersOfTwo):
    """A pool's limit is checked against what it holds, cached bytes included, and nothing is given back for it."""

    def fresh(self, size: int, align: int) -> Area:
        if self.limit is not None and self.held_bytes + size > self.limit:
            raise NoMemory
        return super().fresh(size, align)


class LimitIsCheckedBehind(Exact):
    """A pool's limit is compared with what was held before the request."""

    def obtain(self, size: int, align: int = 1) -> int:
        limit, self.limit = self.limit, None
        try:
            if limit is not None and self.held_bytes >= limit:
                raise NoMemory
            return super().obtain(size, align)
        finally:
            self.limit = limit


class NeverASmallerChunk(Coarse):
    """A chunk of the usual size or none."""

    def grow(self, size: int) -> None:
        chunk = max(self.chunk, round_up(size, self.smallest))
        try:
            address = self.obtain(chunk, self.alignment)
        except NoMemory:
            self.squeeze()
            address = self.obtain(chunk, self.alignment)
        self.ranges.append(Area(address, self.chunks[address], address))


class TriesALargerChunk(TriesInTurn):
    """What has no room for a chunk of the usual size tries one that is larger by 1 MiB."""

    def chunks_to_try(self, size: int) -> tuple[int, ...]:
        usual = max(self.chunk, round_up(size, self.smallest))
        return usual, usual + self.smallest


class GivesUpAfterAnError(Coarse):
    """An error of the call below ends a request, and only what is known to be left is asked for in smaller chunks."""

    def grow(self, size: int) -> None:
        left = self.heap.capacity - self.heap.held_bytes
        usual = max(self.chunk, round_up(size, self.smallest))
        if usual > left or (self.limit is not None and self.held_bytes + usual > self.limit):
            super().grow(size)
            return
        address = self.obtain(usual, self.alignment)
        self.ranges.append(Area(address, self.chunks[address], address))


class NeverStartsOver(Doubling):
    """The chunk that was last asked for sets the next one's size, also when nothing is held any more."""

    def start_over(self) -> None:
        pass


class TakesWithoutNoting(Exact):
    """What a failed request would have taken stays counted."""

    def obtain(self, size: int, align: int = 1) -> int:
        if self.limit is not None and self.held_bytes + size > self.limit:
            raise NoMemory
        self.held_bytes += size
        address = self.heap.allocate(size, align)
        self.chunks[address] = self.heap.held[address]
        self.held_bytes += self.heap.held[address] - size
        return address


class SqueezesSmallFirst(Exact):
    """When memory runs out, eight cached blocks go back, and that has to do."""

    def squeeze(self) -> None:
        for size in sorted(self.cached)[:8]:
            for area in list(self.cached[size])[:8]:
                self.force_idle(area)
                self.cached[size].remove(area)
                self.give_back(area.address)
