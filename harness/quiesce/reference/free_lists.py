"""Cached blocks of one pool, by size class and by the stream that freed them.

A cached block carries its guards: events recorded behind the work that may still use it. Reuse on the stream that
freed it needs no wait for that stream's own work; reuse anywhere else waits for every guard.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quiesce.reference.ledger import Ledger
from quiesce.reference.guards import Guard
from quiesce.reference.streams import Stream

if TYPE_CHECKING:
    from quiesce.reference.chunks import Chunk

OVERSIZED_RATIO_MAX: Final = 16
"""A cached oversized block serves requests down to a sixteenth of its size (Thrust's ``cached_size_cutoff_factor``)."""


@dataclass(slots=True, eq=False)
class CachedBlock:
    """A free block that the pool keeps. ``stream`` freed it."""

    address: int
    footprint_bytes: int
    chunk: Chunk
    stream: Stream
    guards: tuple[Guard, ...] = ()
    gone: bool = False


@dataclass(slots=True)
class _Class:
    by_stream: dict[Stream, list[CachedBlock]] = field(default_factory=dict)


class FreeLists:
    """The cached blocks of one pool; taking and putting look at a bounded number of entries."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._classes: dict[int, _Class] = {}
        self._sizes: list[int] = []

    def put(self, block: CachedBlock) -> None:
        """Keep a block."""
        self._ledger.step()
        size = block.footprint_bytes
        if size not in self._classes:
            self._classes[size] = _Class()
            insort(self._sizes, size)
        self._classes[size].by_stream.setdefault(block.stream, []).append(block)

    def take(self, size_bytes: int, stream: Stream) -> CachedBlock | None:
        """Return a block of exactly ``size_bytes``: one that ``stream`` freed, else any other; None where none is kept."""
        lists = self._classes.get(size_bytes)
        if lists is None:
            return None
        block = self._pop(lists, stream)
        while block is None and lists.by_stream:
            block = self._pop(lists, next(iter(lists.by_stream)))
        if not lists.by_stream:
            del self._classes[size_bytes]
            del self._sizes[bisect_left(self._sizes, size_bytes)]
        return block

    def take_oversized(self, size_bytes: int, stream: Stream) -> CachedBlock | None:
        """Return the smallest kept block that holds ``size_bytes`` and is not much larger."""
        index = bisect_left(self._sizes, size_bytes)
        while index < len(self._sizes):
            self._ledger.step()
            size = self._sizes[index]
            if size // size_bytes >= OVERSIZED_RATIO_MAX:
                return None
            block = self.take(size, stream)
            if block is not None:
                return block
        return None

    def _pop(self, lists: _Class, stream: Stream) -> CachedBlock | None:
        entries = lists.by_stream.get(stream)
        while entries:
            self._ledger.step()
            block = entries.pop()
            if not entries:
                del lists.by_stream[stream]
            if not block.gone:  # its chunk went back upstream meanwhile
                return block
        return None
