"""Cached blocks of one pool, by size class and by the stream that freed them.

A cached block carries its guards: events recorded behind the work that may still use it. Reuse on the stream that
freed it needs no wait for that stream's own work; reuse anywhere else waits for every guard.
"""

from __future__ import annotations

from typing import Final

from quiesce.reference.bag import Bag
from quiesce.reference.chunks import CachedBlock
from quiesce.reference.ledger import Ledger
from quiesce.reference.objects import Stream
from quiesce.reference.size_index import SizeIndex

OVERSIZED_RATIO_MAX: Final = 16
"""A cached oversized block serves requests down to a sixteenth of its size (Thrust's ``cached_size_cutoff_factor``)."""


class FreeLists:
    """The cached blocks of one pool; taking and putting look at a bounded number of entries."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_size: SizeIndex[CachedBlock] = SizeIndex()
        self._by_stream: dict[tuple[int, Stream], Bag[CachedBlock]] = {}

    def put(self, block: CachedBlock) -> None:
        """Keep a block."""
        self._ledger.step()
        self._by_size.add(block.footprint_bytes, block)
        self._by_stream.setdefault((block.footprint_bytes, block.stream), Bag()).add(block)

    def discard(self, block: CachedBlock) -> None:
        """Forget a block. Raises :class:`KeyError` where it is not kept."""
        self._ledger.step()
        key = (block.footprint_bytes, block.stream)
        bag = self._by_stream[key]
        bag.remove(block)
        if not bag.things:
            del self._by_stream[key]
        self._by_size.remove(block.footprint_bytes, block)

    def take(self, size_bytes: int, stream: Stream) -> CachedBlock | None:
        """Return a block of exactly ``size_bytes``: one that ``stream`` freed, else any other; None if none is kept."""
        own = self._by_stream.get((size_bytes, stream))
        blocks = own.things if own is not None else self._by_size.of_size(size_bytes)
        if not blocks:
            return None
        block = blocks[-1]
        self.discard(block)
        return block

    def take_oversized(self, size_bytes: int, stream: Stream) -> CachedBlock | None:
        """Return the smallest kept block that holds ``size_bytes`` and is not much larger."""
        self._ledger.step()
        size = next(self._by_size.sizes_from(size_bytes), None)
        if size is None or size // size_bytes >= OVERSIZED_RATIO_MAX:
            return None
        return self.take(size, stream)
