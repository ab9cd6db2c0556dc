"""What a backend that promises to reuse memory needs no more memory for.

It has each freed block that nothing was put into since for one request that is like it. A pool that has nothing, or
could give back all that it has, needs no more for a request than it took for such a one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from quiesce.allocators.oracle.blocks import BlockState
from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.clocks import Clock, StreamState
from quiesce.allocators.oracle.memory import ON_THE_DEVICE, SOME_POOL, BackingRange, MemoryModel
from quiesce.model import operations as ops
from quiesce.model.observations import BackingAllocated
from quiesce.model.operations import MemoryKind, Slot


@dataclass(frozen=True, slots=True)
class Idle:
    """A freed block, what it has to wait for, and when it was freed."""

    block: BlockState
    guard: Clock
    freed_at: int


class IntactBlocks:
    """Follows what is freed and taken, in constant time; who asks looks through all ranges that were taken."""

    def __init__(self) -> None:
        self._now = 0
        self._idle: dict[int, Idle] = {}
        self._taken: dict[tuple[int, int], int] = {}
        """When each range was last taken, while there was something to be in the way of."""

    def free(self, block: BlockState, stream: StreamState, guard: Clock) -> None:
        """Enter a block that was freed; no stream but its own is to have it again."""
        self._now += 1
        if stream is block.stream and not block.graphs:
            self._idle[block.address] = Idle(block, guard, self._now)

    def take(self, start: int, end: int) -> None:
        """Enter that a block was put into ``[start, end)``, or that it was taken or released."""
        self._now += 1
        self._idle.pop(start, None)
        if self._idle:
            self._taken[start, end] = self._now

    def forget(self) -> None:
        """Take it that anything may have been put anywhere."""
        self._idle.clear()
        self._taken.clear()

    def like(self, request: ops.Allocate, stream: StreamState | None) -> Iterator[Idle]:
        """Yield the freed blocks that a request on ``stream`` is like in everything that an allocator may look at."""
        asked = (request.size_bytes, request.alignment_bytes or 0, request.kind, request.pool, stream)
        for idle in self._idle.values():
            block = idle.block
            if (block.size_bytes, block.alignment_bytes, block.kind, block.pool, block.stream) == asked:
                yield idle

    def is_in_place(self, idle: Idle, margin_bytes: int, chunk: range) -> bool:
        """Whether nothing was put into a block's place since, or within ``margin_bytes``, which it may have had too.

        Nor anything of another size into its ``chunk``: an allocator may have cut that anew.
        """
        block = idle.block
        for (start, end), when in self._taken.items():
            if when <= idle.freed_at:
                continue
            alike = end - start == block.size_bytes
            low, high = (block.address, block.end) if alike else (chunk.start, chunk.stop)
            if start < high + margin_bytes and low < end + margin_bytes:
                return False
        return True


_Asked: TypeAlias = tuple[MemoryKind, int, int]


class FromNothing:
    """How much memory served a request of a pool that held nothing, and which pools were asked before."""

    def __init__(self) -> None:
        self._asked_pools: set[Slot | None] = set()
        self._of_new_pools: dict[_Asked, int] = {}
        self._of_pool: dict[Slot | None, dict[_Asked, int]] = {}

    def forget(self, pool: Slot) -> None:
        """Enter that a pool was made: its name may be that of one that is gone."""
        self._asked_pools.discard(pool)
        self._of_pool.pop(pool, None)

    def is_first(self, operation: ops.Allocate | ops.Stage) -> bool:
        """Note a request, and say whether it is the first of its pool."""
        pool = operation.pool if isinstance(operation, ops.Allocate) else None
        is_first = pool not in self._asked_pools
        self._asked_pools.add(pool)
        return is_first

    def learn(self, operation: ops.Allocate, change: Change, memory: MemoryModel, whole_bytes: int) -> None:
        """Learn from a request that was served where its pool held nothing before: at most ``whole_bytes`` were taken.

        How many they were shows where one piece of backing memory was taken for it.
        """
        if change.made is None or change.armed is not None:
            return
        asked, taken = _asked(operation), _taken_for(operation, change, memory)
        if taken is not None and change.is_first_of_pool and operation.pool is not None:
            self._of_new_pools[asked] = min(taken, self._of_new_pools.get(asked, taken))
        if taken is None and change.is_first_of_pool:
            taken = whole_bytes
        if taken is not None:
            of_pool = self._of_pool.setdefault(operation.pool, {})
            of_pool[asked] = max(taken, of_pool.get(asked, 0))

    def of_new_pools(self, operation: ops.Allocate) -> int | None:
        """Return how much memory served such a request of another new pool before, or None."""
        return None if operation.pool is None else self._of_new_pools.get(_asked(operation))

    def of_pool(self, operation: ops.Allocate) -> int | None:
        """Return how much memory served such a request of the same pool at most when it held nothing, or None."""
        return self._of_pool.get(operation.pool, {}).get(_asked(operation))


def _taken_for(operation: ops.Allocate, change: Change, memory: MemoryModel) -> int | None:
    """Return the size of the one piece of backing memory that was taken for a request, and that is its pool's only one.

    None where there is another one, which it may have had before, or no such piece.
    """
    if change.made is None or len(change.asks) != 1:
        return None
    seen, holding = change.asks[0].observation, memory.holding(change.made)
    if not isinstance(seen, BackingAllocated) or [held.address for held in holding] != [seen.address]:
        return None
    is_alone = not any(held is not holding[0] and _may_serve(held, operation) for _, _, held in memory.backing)
    return seen.size_bytes if is_alone else None


def _may_serve(held: BackingRange, operation: ops.Allocate) -> bool:
    """Whether a backing range may be of the pool that is asked."""
    if held.pool == SOME_POOL:
        return True
    both_on_device = held.kind in ON_THE_DEVICE and operation.kind in ON_THE_DEVICE
    return held.pool == operation.pool and (both_on_device or held.kind is operation.kind)


def _asked(operation: ops.Allocate) -> _Asked:
    return operation.kind, operation.size_bytes, operation.alignment_bytes or 0
