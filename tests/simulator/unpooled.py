"""The reference with memory as a runtime's own functions give it: nothing is cached, and a free waits for the device.

So it can be held against the simulated runtime, whose ``cudaMalloc`` has no pool above it. Capacity is counted in
granules and never fragmented; managed memory takes of what device 0 has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from quiesce.allocators.reference.ledger import MemoryExhausted
from quiesce.allocators.reference.machine import Machine
from quiesce.allocators.reference.objects import Block, Stream
from quiesce.allocators.reference.pinned_pool import PinnedPool
from quiesce.allocators.reference.pool import CachingPool
from quiesce.allocators.reference.world import Parts
from quiesce.model.backend import Context, DeviceProfile
from quiesce.model.operations import MemoryKind

_ENOUGH_BYTES: Final = 1 << 40


@dataclass(slots=True)
class Capacity:
    """What there is of one memory, in bytes, and how much of it is taken."""

    size_bytes: int
    granularity_bytes: int
    used_bytes: int = 0

    def take(self, size_bytes: int) -> None:
        """Take memory. Raises :class:`MemoryExhausted` where there is not enough."""
        footprint = self._footprint(size_bytes)
        if size_bytes > self.size_bytes or footprint > self.size_bytes - self.used_bytes:
            raise MemoryExhausted
        self.used_bytes += footprint

    def give_back(self, size_bytes: int) -> None:
        """Give memory back."""
        self.used_bytes -= self._footprint(size_bytes)

    def _footprint(self, size_bytes: int) -> int:
        return -(-size_bytes // self.granularity_bytes) * self.granularity_bytes


class Unpooled(CachingPool):
    """``cudaMalloc``, ``cudaMallocManaged`` and ``cudaFree``."""

    capacities: ClassVar[tuple[Capacity, ...]]

    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        """Allocate, which a capture forbids that is not relaxed."""
        self.streams.captures.forbid_unsafe_call()
        self.capacities[self.backing.device].take(size_bytes)
        address = self.backing.allocate(size_bytes, alignment_bytes)
        block = Block(address, size_bytes, size_bytes, self.backing.kind, stream, self)
        self.count_allocated(block)
        return block

    def free(self, block: Block, stream: Stream) -> None:
        """Free, once all work of the device is complete, and of every device for memory that all of them see."""
        self.streams.captures.forbid_unsafe_call()
        everywhere = self.backing.kind is MemoryKind.MANAGED
        for device in range(len(self.capacities)) if everywhere else [self.backing.device]:
            self.streams.finish_device(device)
        self.backing.free(block.address)
        self.capacities[self.backing.device].give_back(block.size_bytes)
        self.count_freed(block)


class UnpooledPinned(PinnedPool):
    """``cudaHostAlloc`` and ``cudaFreeHost``, in relaxed mode, as libraries call them."""

    capacity: ClassVar[Capacity]

    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        """Allocate."""
        self.capacity.take(size_bytes)
        with self.streams.captures.relaxed():
            address = self.backing.allocate(size_bytes, alignment_bytes)
        self.live_bytes += size_bytes
        self.live_blocks += 1
        return Block(address, size_bytes, size_bytes, self.backing.kind, stream, self)

    def free(self, block: Block, stream: Stream) -> None:
        """Free, once all work of every device is complete."""
        for default in self.streams.defaults:
            self.streams.finish_device(default.device)
        with self.streams.captures.relaxed():
            self.backing.free(block.address)
        self.capacity.give_back(block.size_bytes)
        self.live_bytes -= block.size_bytes
        self.live_blocks -= 1


def open_unpooled(profile: DeviceProfile) -> Context:
    """Open the reference on ``profile`` without its pools."""

    class Device(Unpooled):
        capacities = tuple(Capacity(profile.capacity_bytes, profile.granularity_bytes) for _ in range(profile.devices))

    class Pinned(UnpooledPinned):
        capacity = Capacity(profile.pinned_capacity_bytes, profile.granularity_bytes)

    # The heaps below count what was asked for, and never run out: capacity is counted above them.
    below = replace(profile, capacity_bytes=_ENOUGH_BYTES, pinned_capacity_bytes=_ENOUGH_BYTES, granularity_bytes=1)
    return Machine(below, Parts(pool=Device, pinned_pool=Pinned))
