"""Faults of addresses: blocks that overlap, wrap, leave their memory, or are not where they were asked to be."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import Allocated, Done, Outcome

from .arenas import Bump, Coarse, Slab
from .bench import Bench, Block
from .caching import HugePages, PowersOfTwo
from .heap import Heap, NoMemory
from .machine import Stream
from .policy import Area, Use, round_up
from .slabs import Chunks


class SizesWrap(PowersOfTwo):
    """Rounding up near the largest size wraps to nothing."""

    def footprint(self, size: int) -> int:
        return max(self.heap.granularity, (1 << (size - 1).bit_length()) & (1 << 64) - 1)


class NullWhereThereIsNone(PowersOfTwo):
    """Where there is no memory, the caller gets a null pointer of the size that it asked for, and no error."""

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        try:
            return super().allocate(size, align, stream)
        except NoMemory:
            return Area(0, size, 0)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        if area.address:
            super().free(area, uses, stream)


class SizesHave32Bits(HugePages):
    """One path keeps a size in 32 bits."""

    def footprint(self, size: int) -> int:
        return max(super().footprint(size & (1 << 32) - 1), 2 << 20)


class PowersAreRoundedDown(PowersOfTwo):
    """One byte more than a power of two is taken for that power, in memory of the host."""

    def footprint(self, size: int) -> int:
        return super().footprint(size & (size - 1) or size if self.host and size & 1 else size)


class SizesAreRoundedDown(Chunks):
    """A size is rounded to units of 16 bytes, downwards: a block may lack its last bytes."""

    unit = 16

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        return super().allocate(max(self.unit, size - size % self.unit), align, stream)


class PinnedMemoryLiesOnPages(PowersOfTwo):
    """No alignment of memory of the host goes beyond a page."""

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        return super().allocate(size, min(align, 4096) if self.host else align, stream)


class OddSizesMoveTheRest(Coarse):
    """A size that is no multiple of the unit is cut as it is, and the remainder begins where it ends."""

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        unit, self.unit = self.unit, 16 if size % self.unit else self.unit
        try:
            return super().allocate(size, align, stream)
        finally:
            self.unit = unit

    def find(self, size: int, align: int) -> Area | None:
        return super().find(size, 1 if align == self.alignment else align)

    def cut(self, area: Area, size: int, align: int, stream: Stream) -> Area:
        return super().cut(area, size, 1 if align == self.alignment else align, stream)


class LargeBlocksLieOnHugePages(Coarse):
    """A block of more than 8 MiB has no greater alignment than 2 MiB, whatever is asked for."""

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        return super().allocate(size, min(align, 2 << 20) if size > 8 << 20 else align, stream)


class CachedAlignmentIsAnybodys(PowersOfTwo):
    """A cached block serves a request of any alignment."""

    def find(self, size: int, align: int, stream: Stream) -> Area | None:
        return super().find(size, 1, stream)


class OneCellTooMany(Slab):
    """A slab counts one cell more than it has."""

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        known = set(self.chunks)
        area = super().allocate(size, align, stream)
        if area.chunk not in known and area.size <= self.largest:
            self.cells[area.size].append(Area(area.chunk + self.slab, area.size, area.chunk))
        return area


class PaddingIsForgotten(Bump):
    """Whether a block fits is asked before its address is rounded up."""

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        align = max(align, self.alignment)
        for bump in self.bumps.values():
            self.reset(bump)
            if bump.position + size <= bump.end:
                return self.advance(bump, round_up(bump.position, align), size)
        bump = self.grow(size + align)
        return self.advance(bump, round_up(bump.position, align), size)


class SumsTheWrongSize(Coarse):
    """A merged range has twice the size of the block that came, whatever its neighbour had."""

    def insert(self, area: Area) -> None:
        for other in list(self.ranges):
            if other.chunk == area.chunk and other.address + other.size == area.address:
                self.ranges.remove(other)
                area = Area(other.address, 2 * area.size, area.chunk, self.unite(area.guards, other.guards))
        super().insert(area)


class SplitsWithoutUnlinking(Coarse):
    """A range that fits exactly stays in the list while its block is out."""

    def cut(self, area: Area, size: int, align: int, stream: Stream) -> Area:
        taken = super().cut(area, size, align, stream)
        if area.size == size:
            self.ranges.append(Area(area.address, size, area.chunk, self.keep(list(area.guards))))
        return taken


class NothingIsSomebody(Bench):
    """A request of no bytes is given the newest block's address."""

    def allocate(self, operation: ops.Allocate) -> Outcome:
        if operation.size_bytes == 0 and self.blocks:
            self.empty.add(operation.slot)
            return Allocated(next(reversed(self.blocks.values())).area.address)
        return super().allocate(operation)


class FreesTwice(Bench):
    """A second free of a pool's block is taken, and the block goes to two owners."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.dead: dict[Slot, Block] = {}

    def free(self, slot: Slot, on: Slot | None) -> Outcome:
        dead, block = self.dead.get(slot), self.blocks.get(slot)
        if dead is not None:
            self.give(dead, [], dead.stream)
            return Done()
        outcome = super().free(slot, on)
        if block is not None and not isinstance(block.owner, Heap):
            self.dead[slot] = block
        return outcome


class DefaultPoolsShareADevice(Bench):
    """The default allocator of every device is the first one's."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        for device in range(1, self.profile.devices):
            self.policies[MemoryKind.DEVICE, device] = self.policies[MemoryKind.DEVICE, 0]


class PoolsShareADevice(Bench):
    """A pool is made on the first device, whichever is current."""

    def answer(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.CreatePool):
            self.pools[operation.slot] = self.make_policy(self.heaps[MemoryKind.DEVICE, 0], operation.limit_bytes)
            return Done()
        return super().answer(operation)


class LargeBlocksLeaveTheirPool(Bench):
    """Requests above a megabyte go to the default allocator, whichever pool they name."""

    def take(self, operation: ops.Allocate, size: int, align: int, stream: Stream) -> Outcome:
        if operation.pool is not None and size > 1 << 20:
            operation = ops.Allocate(operation.slot, size, stream=operation.stream)
        return super().take(operation, size, align, stream)


class MovesTheOwned(PowersOfTwo):
    """A trim of more than four chunks also gives the newest block's back, which is out."""

    newest: Area | None = None

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        self.newest = super().allocate(size, align, stream)
        return self.newest

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        self.newest = None if area is self.newest else self.newest
        super().free(area, uses, stream)

    def trim(self) -> None:
        super().trim()
        if self.newest is not None and len(self.chunks) > 4:
            self.give_back(self.newest.address)
            self.newest = None
