"""What a backend that promises to reuse memory needs no more memory for.

It has each freed block that nothing was put into since for one request that is like it. Another new pool needs no more
for its first request than a pool needed before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from quiesce.allocators.oracle.blocks import BlockState
from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.clocks import Clock, StreamState
from quiesce.allocators.oracle.memory import SOME_POOL, MemoryModel
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


class FirstRequests:
    """Which pools were asked before, and how much memory a new pool of their kind took for its first request."""

    def __init__(self) -> None:
        self._asked_pools: set[Slot] = set()
        self._taken_bytes: dict[_Asked, int] = {}

    def forget(self, pool: Slot) -> None:
        """Enter that a pool was made: its name may be that of one that is gone."""
        self._asked_pools.discard(pool)

    def is_first(self, operation: ops.Allocate | ops.Stage) -> bool:
        """Note a request, and say whether it is the first of a pool that was made."""
        if not isinstance(operation, ops.Allocate) or operation.pool is None or operation.pool in self._asked_pools:
            return False
        self._asked_pools.add(operation.pool)
        return True

    def learn(self, operation: ops.Allocate, change: Change, memory: MemoryModel) -> None:
        """Learn from a pool's first request where one piece of backing memory served it, and the pool had no other."""
        if change.made is None or change.armed is not None or len(change.asks) != 1:
            return
        seen = change.asks[0].observation
        holding = memory.holding(change.made)
        if not isinstance(seen, BackingAllocated) or [held.address for held in holding] != [seen.address]:
            return
        if any(held.pool in (operation.pool, SOME_POOL) and held is not holding[0] for _, _, held in memory.backing):
            return  # the pool may have had something before
        asked = _asked(operation)
        self._taken_bytes[asked] = min(seen.size_bytes, self._taken_bytes.get(asked, seen.size_bytes))

    def taken_bytes(self, operation: ops.Allocate) -> int | None:
        """Return how much memory served such a request of a new pool before, or None."""
        return self._taken_bytes.get(_asked(operation))


def _asked(operation: ops.Allocate) -> _Asked:
    return operation.kind, operation.size_bytes, operation.alignment_bytes or 0
