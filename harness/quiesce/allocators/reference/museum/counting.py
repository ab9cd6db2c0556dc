"""Faults of counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quiesce.allocators.reference.chunks import LARGEST_CLASS_BYTES, SMALLEST_CLASS_BYTES, Chunk
from quiesce.allocators.reference.objects import Block, Stream
from quiesce.allocators.reference.pool import CachingPool
from quiesce.allocators.reference.world import Fault, Parts

_SMALL_BYTES_MAX: Final = 4 << 10


class _SubtractsRequestedSize(CachingPool):
    """Only a large block that a smaller request got from the cache is counted wrong."""

    def count_freed(self, block: Block) -> None:
        super().count_freed(block)
        if block.footprint_bytes > LARGEST_CLASS_BYTES:
            self.live_bytes += block.footprint_bytes - self.backing.footprint(block.size_bytes)


class _ForgetsBlocks(CachingPool):
    """Only a block of the default stream that is freed on another one is counted wrong."""

    def free(self, block: Block, stream: Stream) -> None:
        super().free(block, stream)
        if block.stream.is_default and not stream.is_default:
            self.live_blocks += 1


class _HeldNeverFalls(CachingPool):
    """Only chunks of the smallest classes are still counted when they are gone."""

    def give_back(self, chunks: Iterable[Chunk]) -> None:
        small = [chunk for chunk in chunks if SMALLEST_CLASS_BYTES < chunk.class_bytes <= _SMALL_BYTES_MAX]
        super().give_back(chunks)
        self.held_bytes += sum(chunk.footprint_bytes for chunk in small)


class _HeldFallsTwice(CachingPool):
    """Only a pool with a limit subtracts twice: from its own counter and through its limit's."""

    def give_back(self, chunks: Iterable[Chunk]) -> None:
        held = self.held_bytes
        super().give_back(chunks)
        if self.limit_bytes is not None:
            self.held_bytes -= held - self.held_bytes


def _counter(name: str, upstream: str, mechanism: str, pool: type[CachingPool]) -> Fault:
    return Fault(f"counter.{name}", upstream, mechanism, Parts(pool=pool))


FAULTS: Final = (
    _counter(
        "subtracts_requested_size", "pytorch/pytorch#135726", "A free subtracts another size.", _SubtractsRequestedSize
    ),
    _counter("forgets_blocks", "NVIDIA/TensorRT-LLM#12834", "The block count is not updated.", _ForgetsBlocks),
    _counter("held_never_falls", "LLNL/Umpire#539", "Returned memory is still counted.", _HeldNeverFalls),
    _counter("held_falls_twice", "rapidsai/rmm#2404", "A counter underflows.", _HeldFallsTwice),
)
