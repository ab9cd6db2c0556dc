"""Staging: how a library brings host data to the device (``cupy.asarray``).

A pinned source is copied directly and kept until the copy is done (upstream: cupy#7939, cupy#8789, fixed in 13.4.0);
a pageable one goes through a pinned buffer of the library's own, because the caller may overwrite it at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from quiesce.observations import CopyEnqueued
from quiesce.operations import MemoryKind
from quiesce.outcomes import CAPTURE_UNSUPPORTED
from quiesce.reference.calls import CallFailed, CallRejected
from quiesce.reference.ledger import Ledger
from quiesce.reference.objects import Block, Stream
from quiesce.reference.pinned_pool import PinnedPool
from quiesce.reference.pool import CachingPool
from quiesce.reference.streams import Streams


def use(blocks: Sequence[Block], streams: Streams, stream: Stream) -> None:
    """Enqueue work on ``stream`` that uses ``blocks``; in a capture it is recorded instead of run."""
    if stream.capture is not None:
        stream.capture.launch(stream, [tuple(blocks)])
        for block in blocks:
            block.captured_on.add(stream)
        return
    streams.enqueue(stream)
    for block in blocks:
        block.uses[stream] = None


class Stager:
    """Copies host blocks into device blocks."""

    def __init__(self, pinned_pool: PinnedPool, streams: Streams, ledger: Ledger) -> None:
        self.pinned_pool = pinned_pool
        self.streams = streams
        self.ledger = ledger

    def stage(self, source: Block, pool: CachingPool, stream: Stream) -> Block:
        """Return a block of ``pool`` into which ``source`` is being copied on ``stream``."""
        destination = pool.allocate(source.size_bytes, 1, stream)
        try:
            self.bring(source, destination, stream)
        except CallFailed:
            self.roll_back(destination, stream)
            raise
        return destination

    def roll_back(self, destination: Block, stream: Stream) -> None:
        """Give the destination of a failed copy back."""
        destination.owner.free(destination, stream)

    def bring(self, source: Block, destination: Block, stream: Stream) -> None:
        """Copy a pinned source directly, any other by way of a buffer."""
        if source.kind is MemoryKind.PINNED:
            self.copy(source, destination, stream)
        else:
            self.through_buffer(source, destination, stream)

    def through_buffer(self, source: Block, destination: Block, stream: Stream) -> None:
        """Copy by way of a pinned buffer, which goes back to its pool behind the copy.

        A capture is refused before anything happens, as CuPy refuses it: the graph would read the buffer whenever it
        runs, and the source long after the caller may have overwritten it.
        """
        if stream.capture is not None:
            raise CallRejected(CAPTURE_UNSUPPORTED)
        buffer = self.pinned_pool.allocate(source.size_bytes, 1, stream)
        try:
            self.copy(buffer, destination, stream)
        finally:
            self.pinned_pool.free(buffer, stream)

    def copy(self, source: Block, destination: Block, stream: Stream) -> None:
        """Enqueue the copy; both blocks are in use until it is done."""
        use((source, destination), self.streams, stream)
        size = min(source.size_bytes, destination.size_bytes)
        self.ledger.see(CopyEnqueued(source.address, destination.address, size, stream.name))
