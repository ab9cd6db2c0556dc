"""Which freed blocks nothing was put into since: a backend that promises to reuse blocks has each for one request."""

from __future__ import annotations

from collections.abc import Iterator

from quiesce import operations as ops
from quiesce.oracle.clocks import Clock, StreamState
from quiesce.oracle.memory import BlockState


class IntactBlocks:
    """Follows what is freed and taken, in constant time; who asks looks through all ranges that were ever taken."""

    def __init__(self) -> None:
        self._now = 0
        self._freed: dict[int, tuple[int, BlockState, Clock]] = {}
        self._taken: dict[tuple[int, int], int] = {}
        """When each range was last taken."""

    def free(self, block: BlockState, stream: StreamState, guard: Clock) -> None:
        """Enter a block that was freed; no stream but its own is to have it again."""
        self._now += 1
        if stream is block.stream and not block.graphs:
            self._freed[block.address] = (self._now, block, guard)

    def take(self, start: int, end: int) -> None:
        """Enter that something was put into ``[start, end)``, or that this came or went."""
        self._now += 1
        self._freed.pop(start, None)
        self._taken[start, end] = self._now

    def forget(self) -> None:
        """Take it that anything may have been put anywhere."""
        self._freed.clear()
        self._taken.clear()

    def serving(
        self, request: ops.Allocate, stream: StreamState | None, margin_bytes: int
    ) -> Iterator[tuple[BlockState, Clock]]:
        """Yield the freed blocks that serve a request on ``stream``, and the work that each has to wait for.

        Nothing was put into them or within ``margin_bytes``, which an allocator may have needed beside them.
        """
        asked = (request.size_bytes, request.alignment_bytes or 0, request.kind, request.pool, stream)
        for freed_at, block, guard in self._freed.values():
            had = (block.size_bytes, block.alignment_bytes, block.kind, block.pool, block.stream)
            if had == asked and not self._is_touched(block, freed_at, margin_bytes):
                yield block, guard

    def _is_touched(self, block: BlockState, since: int, margin_bytes: int) -> bool:
        low, high = block.address - margin_bytes, block.end + margin_bytes
        return any(when > since and start < high and low < end for (start, end), when in self._taken.items())
