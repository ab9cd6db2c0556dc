"""Chunks: what a pool holds from the backing allocator, how large the next one is, and which blocks are free there.

A freed block waits for events, its guards, before anybody else may have its memory. Cached blocks are found by size
class and by the stream that freed them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from quiesce.allocators.indexes import Bag, SizeIndex
from quiesce.allocators.reference.ledger import Ledger
from quiesce.allocators.reference.objects import Block, Event, Stream
from quiesce.allocators.reference.streams import Streams


@dataclass(slots=True, eq=False)
class Guard:
    """An event recorded on ``stream`` behind work that uses a freed block."""

    event: Event
    stream: Stream


def record_guards(block: Block, streams: Streams, ledger: Ledger) -> list[Guard]:
    """Record an event behind the work of every stream that uses ``block``; what is complete needs no guard."""
    guards = []
    for user in block.uses:
        ledger.step()
        if not user.alive:  # nothing can be recorded on a destroyed stream: wait for what it left
            streams.synchronize_device(user.device)
            continue
        event = streams.create_internal_event(user.device)
        streams.record(event, user)
        if not streams.captures.any_active and streams.is_complete(event):
            streams.destroy_event(event)
        else:
            guards.append(Guard(event, user))
    return guards


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
