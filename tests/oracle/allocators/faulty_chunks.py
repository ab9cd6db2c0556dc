"""Faults of chunks and slabs: what shows only with many blocks, many sizes, several chunks, or at a limit."""

from __future__ import annotations

from quiesce.model.backend import Closing

from .arenas import Coarse
from .bench import Bench
from .caching import Exact, PowersOfTwo
from .heap import NoMemory
from .machine import Stream
from .policy import Area, Policy, round_up
from .slabs import Chunks, CountedSlabs, Slab


class RefusesItsLimit(Chunks):
    """A request that reaches the limit of its pool is refused, although it does not exceed it."""

    def obtain(self, size: int, align: int = 1) -> int:
        if self.limit is not None and self.held_bytes + size >= self.limit:
            raise NoMemory
        return super().obtain(size, align)


class NeverSplits(Chunks):
    """A request takes all of the chunk that serves it."""

    def cut(self, area: Area, size: int, align: int, stream: Stream) -> Area:
        return super().cut(area, area.size, align, stream)


class TrimEndsAtTheFirstBusy(PowersOfTwo):
    """A trim ends at the first kept block that is in flight, and leaves all that come after it."""

    def trim(self) -> None:
        for entries in self.cached.values():
            for area in list(entries):
                if not self.is_idle(area):
                    return
                entries.remove(area)
                self.give_back(area.address)


class TrimEndsAtTheFirstBusyChunk(Chunks):
    """A trim ends at the first free chunk that is in flight."""

    def trim(self) -> None:
        for area in [area for area in self.ranges if area.size == self.chunks.get(area.chunk)]:
            if not self.is_idle(area):
                return
            self.ranges.remove(area)
            self.give_back(area.chunk)


class TrimEndsAtTheFirstBusyLargeBlock(CountedSlabs):
    """A trim ends at the first large block that is in flight."""

    def trim(self) -> None:
        busy = next((index for index, area in enumerate(self.large) if not self.is_idle(area)), None)
        later = [] if busy is None else self.large[busy:]
        self.large = self.large if busy is None else self.large[:busy]
        super().trim()
        self.large += later


class OneClassIsTooSmall(CountedSlabs):
    """The cells for blocks of 16,385 to 18,432 bytes lie 16 KiB apart."""

    def stride(self, cell: int) -> int:
        return 16 << 10 if 16 << 10 < cell <= 18 << 10 else cell


class CountsInEightBits(CountedSlabs):
    """A slab has a byte for the number of its owned blocks."""

    def empty_slabs(self) -> list[Slab]:
        slabs = [slab for slab in self.at.values() if not slab.owned & 0xFF]
        return [slab for slab in slabs if self.is_idle_slab(slab)]


class OneSlabOfASize(CountedSlabs):
    """A trim returns one empty slab of each size."""

    def empty_slabs(self) -> list[Slab]:
        return list({slab.cell: slab for slab in super().empty_slabs()}.values())


class TakesTwoSlabs(CountedSlabs):
    """A slab is twice as large as is declared."""

    def obtain(self, size: int, align: int = 1) -> int:
        return super().obtain(2 * size if size == self.slab else size, align)


class TakesAPageMore(Exact):
    """What is larger than 1 MiB takes 4 KiB more than its size."""

    def footprint(self, size: int) -> int:
        return super().footprint(size + (4096 if size > 1 << 20 else 0))


class TriesInTurn(Coarse):
    """What has no room for a chunk tries others."""

    def chunks_to_try(self, size: int) -> tuple[int, ...]:
        """Return the sizes of the chunks, in the order in which they are asked for."""
        raise NotImplementedError

    def grow(self, size: int) -> None:
        for chunk in self.chunks_to_try(size):
            try:
                address = self.obtain(chunk, self.alignment)
            except NoMemory:
                self.squeeze()
                continue
            self.ranges.append(Area(address, self.chunks[address], address))
            return
        raise NoMemory


class NeverBelowHalfAChunk(TriesInTurn):
    """What has no room for a chunk tries half a chunk, and no less."""

    def chunks_to_try(self, size: int) -> tuple[int, ...]:
        least = round_up(size, self.chunk // 2)
        return max(self.chunk, least), least


class ClosesInFlight(Bench):
    """A context that is closed while work is in flight forgets the chunks that the work uses."""

    def close(self) -> Closing:
        for block in self.blocks.values():
            in_flight = any(not stream.tail.done for stream in block.uses)
            if in_flight and isinstance(block.owner, Policy) and block.area.chunk in block.owner.chunks:
                del block.owner.chunks[block.area.chunk]
        return super().close()
