"""What the oracle knows of memory: blocks, what was freed and is still guarded, and what is held from upstream."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from quiesce.observations import Observation, UpstreamAllocated, UpstreamFreed
from quiesce.operations import MemoryKind, Slot
from quiesce.oracle.clocks import Clock, StreamState
from quiesce.oracle.intervals import IntervalIndex


@dataclass(slots=True, eq=False)
class BlockState:
    """A block that the sequence owns or owned."""

    slot: Slot
    address: int
    size_bytes: int
    kind: MemoryKind
    stream: StreamState
    pool: Slot | None
    device: int
    made_by: str
    alive: bool = True
    uses: Clock = field(default_factory=dict)
    inherited: list[Freed] = field(default_factory=list)
    claimed_bytes: int | None = None
    """By how much the backend's own ``live`` gauge rose for it."""

    @property
    def end(self) -> int:
        """The address behind the block."""
        return self.address + self.size_bytes


@dataclass(slots=True, eq=False)
class Freed:
    """Memory that was freed while work on it may still be in flight."""

    guard: Clock
    block: BlockState


@dataclass(slots=True, eq=False)
class UpstreamRange:
    """An upstream allocation that is held."""

    address: int
    size_bytes: int
    kind: MemoryKind
    pool: Slot | None
    last_freed_on: StreamState | None = None
    """The stream on which a block in it was freed last: the free itself may wait there."""


@dataclass(slots=True, frozen=True)
class Returned:
    """Memory that went back upstream although a block, or work in flight, was in it."""

    freed: UpstreamFreed
    block: BlockState
    guard: Clock | None
    """The work that the memory had to wait for; None where the block is still owned."""


class MemoryModel:
    """All memory that is known of."""

    def __init__(self) -> None:
        self.live: IntervalIndex[BlockState] = IntervalIndex()
        self.live_count = 0
        self.live_bytes = 0
        self.guarded: IntervalIndex[Freed] = IntervalIndex()
        self.upstream: IntervalIndex[UpstreamRange] = IntervalIndex()
        self.upstream_seen = False
        self.held_bytes: Counter[Slot | None] = Counter()

    def add(self, block: BlockState) -> list[BlockState]:
        """Enter a block and return the live blocks that it overlaps."""
        overlapped = [other for _, _, other in self.live.overlapping(block.address, block.end)]
        if not overlapped:
            self.live.add(block.address, block.end, block)
        block.inherited = self.guarded.cut(block.address, block.end)
        self.live_count += 1
        self.live_bytes += block.size_bytes
        return overlapped

    def remove(self, block: BlockState, guard: Clock, freed_on: StreamState | None) -> None:
        """Take a block out, freed on a stream; ``guard`` is the work that its memory must wait for."""
        for _, _, held in self.upstream.overlapping(block.address, block.end):
            held.last_freed_on = freed_on
        block.alive = False
        self.live.remove(block.address)
        self.live_count -= 1
        self.live_bytes -= block.size_bytes
        if guard:
            self.guarded.cut(block.address, block.end)
            self.guarded.add(block.address, block.end, Freed(guard, block))

    def see_upstream(self, observation: Observation, pool: Slot | None) -> list[Returned]:
        """Enter an upstream allocation or return; say which blocks and guarded ranges a return takes along."""
        match observation:
            case UpstreamAllocated(address, size, kind):
                self.upstream_seen = True
                if not self.upstream.overlapping(address, address + size):
                    self.upstream.add(address, address + size, UpstreamRange(address, size, kind, pool))
                    self.held_bytes[pool] += size
            case UpstreamFreed(address, size):
                held = self.upstream.remove(address)
                if held is not None:
                    self.held_bytes[held.pool] -= held.size_bytes
                end = address + size
                taken = [Returned(observation, block, None) for _, _, block in self.live.overlapping(address, end)]
                taken += [Returned(observation, freed.block, freed.guard) for freed in self.guarded.cut(address, end)]
                return taken
            case _:
                pass
        return []
