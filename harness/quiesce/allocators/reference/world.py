"""The world of one context: every component of the reference, built for a device profile, and the slots in use.

Its parts are one class for each component, so that a fault is one part replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from quiesce.allocators.reference.backing import BackingAllocator, FailureInjector, Heap
from quiesce.allocators.reference.captures import Captures
from quiesce.allocators.reference.ledger import CallRejected, Ledger, MemoryExhausted
from quiesce.allocators.reference.objects import Block, Event, Graph, Stream
from quiesce.allocators.reference.pinned_pool import PinnedPool, Stager
from quiesce.allocators.reference.pool import CachingPool
from quiesce.allocators.reference.runtime import Instance, Launcher, Lifecycle
from quiesce.allocators.reference.streams import Streams
from quiesce.allocators.reference.tape import CountingTape, Tape
from quiesce.model.backend import DeviceProfile
from quiesce.model.operations import MemoryKind, Slot
from quiesce.model.outcomes import INVALID_HANDLE, INVALID_VALUE


@dataclass(frozen=True, slots=True)
class Parts:
    """The component classes that a machine is built from."""

    captures: type[Captures] = Captures
    streams: type[Streams] = Streams
    pool: type[CachingPool] = CachingPool
    pinned_pool: type[PinnedPool] = PinnedPool
    stager: type[Stager] = Stager
    launcher: type[Launcher] = Launcher
    lifecycle: type[Lifecycle] = Lifecycle
    tape: Callable[[Ledger], Tape] = CountingTape


@dataclass(frozen=True, slots=True)
class Fault:
    """A switchable historic bug. ``upstream`` numbers it; ``mechanism`` says in a sentence what goes wrong."""

    name: str
    upstream: str
    mechanism: str
    parts: Parts


DEVICE_BASE: Final = 0x7E90_0000_0000
DEVICE_STRIDE: Final = 1 << 40
PINNED_BASE: Final = 0x5100_0000_0000
PAGEABLE_BASE: Final = 0x5200_0000_0000
MANAGED_BASE: Final = 0x5300_0000_0000
PAGEABLE_CAPACITY_BYTES: Final = 1 << 40

_Thing = TypeVar("_Thing")


class World:
    """Components and slots. ``lookup`` methods raise :class:`CallRejected` for a slot that names nothing."""

    def __init__(self, profile: DeviceProfile, parts: Parts) -> None:
        self.profile = profile
        self.parts = parts
        self.ledger = Ledger()
        self.injector = FailureInjector()
        self.captures = parts.captures()
        self.streams = parts.streams(profile.devices, self.ledger, self.captures, profile.flavour)
        self.device = 0
        self.device_backings = [
            self._backing(MemoryKind.DEVICE, DEVICE_BASE + d * DEVICE_STRIDE, profile.capacity_bytes, d)
            for d in range(profile.devices)
        ]
        self.managed_backing = self._backing(MemoryKind.MANAGED, MANAGED_BASE, profile.capacity_bytes, 0)
        pinned = self._backing(MemoryKind.PINNED, PINNED_BASE, profile.pinned_capacity_bytes, 0)
        self.pageable = _PageableHeap(self._backing(MemoryKind.PAGEABLE, PAGEABLE_BASE, PAGEABLE_CAPACITY_BYTES, 0))
        self.device_pools = [self.new_pool(backing, None) for backing in self.device_backings]
        self.managed_pool = self.new_pool(self.managed_backing, None)
        self.pinned_pool = parts.pinned_pool(pinned, self.streams, self.ledger, profile.alignment_bytes)
        self.stager = parts.stager(self.pinned_pool, self.streams, self.ledger)
        self.launcher = parts.launcher(self.streams, self.captures, self.ledger, profile.devices)
        self.lifecycle = parts.lifecycle(profile.initialization, self.ledger)
        self.tape = parts.tape(self.ledger)
        self.blocks: dict[Slot, Block] = {}
        self.freed: dict[Slot, Block] = {}
        self.empty_slots: set[Slot] = set()
        self.pools: dict[Slot, CachingPool] = {}
        self.stream_slots: dict[Slot, Stream] = {}
        self.event_slots: dict[Slot, Event] = {}
        self.graphs: dict[Slot, Graph] = {}
        self.instances: dict[Slot, Instance] = {}

    def _backing(self, kind: MemoryKind, base: int, capacity_bytes: int, device: int) -> BackingAllocator:
        pageable = kind is MemoryKind.PAGEABLE  # the host's own allocator, which no capture concerns
        return BackingAllocator(
            Heap(base, capacity_bytes, self.ledger),
            kind,
            device,
            self.profile.granularity_bytes,
            self.ledger,
            self.injector,
            _permit if pageable else self.captures.forbid_unsafe_call,
        )

    def new_pool(self, backing: BackingAllocator, limit_bytes: int | None) -> CachingPool:
        """Create a caching pool above ``backing``."""
        return self.parts.pool(
            backing, self.streams, self.ledger, self.injector, self.profile.alignment_bytes, limit_bytes
        )

    def every_pool(self) -> list[CachingPool]:
        """Return the default pools and those that the sequence created."""
        return [*self.device_pools, self.managed_pool, *self.pools.values()]

    def keep(self, slot: Slot, block: Block) -> None:
        """Give a block that was allocated to the sequence."""
        self.blocks[slot] = block
        self.empty_slots.discard(slot)

    def block(self, slot: Slot) -> Block:
        """Look a live block up."""
        return _look_up(self.blocks, slot, INVALID_VALUE)

    def stream(self, slot: Slot | None) -> Stream:
        """Look a stream up; None is the current device's default stream."""
        if slot is None:
            return self.streams.defaults[self.device]
        return _look_up(self.stream_slots, slot, INVALID_HANDLE)

    def event(self, slot: Slot) -> Event:
        """Look an event up."""
        return _look_up(self.event_slots, slot, INVALID_HANDLE)

    def pool(self, slot: Slot) -> CachingPool:
        """Look a pool up."""
        return _look_up(self.pools, slot, INVALID_HANDLE)

    def instance(self, slot: Slot) -> Instance:
        """Look an instance up."""
        return _look_up(self.instances, slot, INVALID_HANDLE)

    def graph(self, slot: Slot) -> Graph:
        """Look a graph up."""
        return _look_up(self.graphs, slot, INVALID_HANDLE)


def _permit() -> None:
    """Refuse nothing."""


def _look_up(table: dict[Slot, _Thing], slot: Slot, code: str) -> _Thing:
    thing = table.get(slot)
    if thing is None:
        raise CallRejected(code)
    return thing


class _PageableHeap:
    """Pageable host memory: the system's own, no pool, no stream."""

    def __init__(self, backing: BackingAllocator) -> None:
        self._backing = backing
        self.live_bytes = 0
        self.live_blocks = 0

    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        if size_bytes > PAGEABLE_CAPACITY_BYTES:
            raise MemoryExhausted
        address = self._backing.allocate(size_bytes, max(alignment_bytes, 16))
        size = self._backing.footprint(size_bytes)
        self.live_bytes += size
        self.live_blocks += 1
        return Block(address, size_bytes, size, MemoryKind.PAGEABLE, stream, self)

    def free(self, block: Block, stream: Stream) -> None:
        self.live_bytes -= block.footprint_bytes
        self.live_blocks -= 1
        self._backing.free(block.address)

    def free_again(self, block: Block, stream: Stream) -> None:
        raise CallRejected(INVALID_VALUE)
