"""Chunks: what a pool holds from the backing allocator, and how large the next one is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from quiesce.reference.guards import Guard
from quiesce.reference.objects import Stream

SMALLEST_CLASS_BYTES: Final = 512
LARGEST_CLASS_BYTES: Final = 1 << 20
"""Requests above this are oversized: a chunk of their own (Thrust's ``largest_block_size``)."""
FIRST_BLOCKS: Final = 16
CHUNK_BYTES_MAX: Final = 1 << 30


@dataclass(slots=True, eq=False)
class Chunk:
    """One backing allocation, cut into ``count`` blocks of ``class_bytes``; ``carved`` were handed out before."""

    address: int
    footprint_bytes: int
    class_bytes: int
    count: int
    carved: int = 0
    cached: dict[CachedBlock, None] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether no block of the chunk is in the sequence's hands."""
        return len(self.cached) == self.carved


@dataclass(slots=True, eq=False)
class CachedBlock:
    """A free block that the pool keeps. ``stream`` freed it."""

    address: int
    footprint_bytes: int
    chunk: Chunk
    stream: Stream
    guards: tuple[Guard, ...] = ()


def class_of(size_bytes: int, alignment_bytes: int) -> int | None:
    """Return the size class of a request: the next power of two; None where it is oversized."""
    least = max(size_bytes, alignment_bytes, SMALLEST_CLASS_BYTES)
    if least > LARGEST_CLASS_BYTES:
        return None
    return 1 << (least - 1).bit_length()


class Growth:
    """How many blocks the next chunk of a class has: 16 at first, then half as many again (Thrust's pool)."""

    def __init__(self) -> None:
        self._previous: dict[int, int] = {}

    def next_count(self, class_bytes: int) -> int:
        """Return the blocks of the next chunk."""
        previous = self._previous.get(class_bytes)
        if previous is None:
            return FIRST_BLOCKS
        return max(1, min(previous + max(1, previous // 2), CHUNK_BYTES_MAX // class_bytes))

    def grew(self, class_bytes: int, count: int) -> None:
        """Remember the last chunk."""
        self._previous[class_bytes] = count

    def forget(self, class_bytes: int) -> None:
        """Start over: the class has no chunk any more, so what it needed before says nothing now."""
        self._previous.pop(class_bytes, None)
