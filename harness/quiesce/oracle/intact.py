"""Which freed blocks nothing was put into since: a backend that promises to reuse blocks has each for one request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quiesce import operations as ops
from quiesce.oracle.blocks import BlockState
from quiesce.oracle.clocks import Clock, StreamState


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
