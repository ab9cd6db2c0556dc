"""What the first request of a new pool took: another new pool needs no more for the same request.

The figures that a backend declares are for the worst case. The ledger tells how much a pool really takes.
"""

from __future__ import annotations

from typing import TypeAlias

from quiesce import operations as ops
from quiesce.observations import BackingAllocated
from quiesce.operations import MemoryKind, Slot
from quiesce.oracle.change import Change
from quiesce.oracle.memory import SOME_POOL, MemoryModel

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
