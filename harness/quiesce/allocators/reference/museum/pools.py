"""Faults of the caching pool: what it does not give back, asks for, rounds or counts right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from quiesce.allocators.reference.chunks import LARGEST_CLASS_BYTES, SMALLEST_CLASS_BYTES, CachedBlock, Chunk, Growth
from quiesce.allocators.reference.ledger import CallFailed, MemoryExhausted
from quiesce.allocators.reference.objects import Block, Stream
from quiesce.allocators.reference.pool import CachingPool
from quiesce.allocators.reference.world import Fault, Parts
from quiesce.model.operations import FailurePoint, MemoryKind


class _NoSqueeze(CachingPool):
    def reclaim_steps(self) -> tuple[Callable[[], None], ...]:
        return ()


class _NoSharing(CachingPool):
    def reclaim_steps(self) -> tuple[Callable[[], None], ...]:
        return (self.squeeze,)


class _SkipsPending(CachingPool):
    def squeeze(self) -> None:
        self.give_back(self.ready_chunks())


class _NoSmallerChunk(CachingPool):
    def chunk_counts(self, size_class: int, usual: int) -> Iterator[int]:
        yield usual


class _Ratchet(Growth):
    def forget(self, class_bytes: int) -> None:
        pass


class _RatchetingPool(CachingPool):
    growth_type = _Ratchet


class _OrphansOnBookkeeperFailure(CachingPool):
    def obtain(self, size_bytes: int, alignment: int, class_bytes: int, count: int) -> Chunk:
        footprint = self.backing.footprint(size_bytes)
        if self.limit_bytes is not None and self.held_bytes + footprint > self.limit_bytes:
            raise MemoryExhausted
        address = self.backing.allocate(size_bytes, alignment)
        self.held_bytes += footprint
        self.injector.meet(FailurePoint.BOOKKEEPER)  # throws with the memory in nobody's books
        self.held_bytes -= footprint
        return self.adopt(Chunk(address, footprint, class_bytes, count))


class _CachedCountsAgainstLimit(CachingPool):
    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        if self.limit_bytes is not None and self.held_bytes + size_bytes > self.limit_bytes:
            raise MemoryExhausted
        return super().allocate(size_bytes, alignment_bytes, stream)


class _IgnoresLimit(CachingPool):
    def obtain(self, size_bytes: int, alignment: int, class_bytes: int, count: int) -> Chunk:
        limit, self.limit_bytes = self.limit_bytes, None
        try:
            return super().obtain(size_bytes, alignment, class_bytes, count)
        finally:
            self.limit_bytes = limit


class _SqueezesOnAnyError(CachingPool):
    def obtain(self, size_bytes: int, alignment: int, class_bytes: int, count: int) -> Chunk:
        try:
            return super().obtain(size_bytes, alignment, class_bytes, count)
        except CallFailed:
            raise MemoryExhausted from None


class _DestructorForgetsCached(CachingPool):
    def release(self) -> None:
        self.backing.unregister(self)
        del self.streams.captures.when_over[self]
        self.give_back([chunk for chunk in self.chunks if not chunk.idle])


class _TrimForgetsOversized(CachingPool):
    def trim(self) -> None:
        self.give_back([chunk for chunk in self.ready_chunks() if chunk.class_bytes <= LARGEST_CLASS_BYTES])


class _ManagedSurvivesTrim(CachingPool):
    def trim(self) -> None:
        if self.backing.kind is not MemoryKind.MANAGED:
            super().trim()


class _TrimsOwnedChunks(CachingPool):
    def trim(self) -> None:
        self.give_back([chunk for chunk in self.chunks if chunk.cached])  # one free block is taken for all free


class _NeverSettles(CachingPool):
    def settle_deferred(self) -> None:
        pass


class _NoUnlink(CachingPool):
    def take_oversized(self, size: int, alignment: int, stream: Stream) -> CachedBlock | None:
        cached = super().take_oversized(size, alignment, stream)
        if cached is not None:
            self.free_lists.put(CachedBlock(cached.address, cached.footprint_bytes, cached.chunk, cached.stream))
        return cached


class _CarvesPastTheChunk(CachingPool):
    def adopt(self, chunk: Chunk) -> Chunk:
        super().adopt(chunk)
        chunk.count += chunk.class_bytes < LARGEST_CLASS_BYTES
        return chunk


class _IgnoresAlignment(CachingPool):
    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        return super().allocate(size_bytes, 1, stream)


class _SizeWraps(CachingPool):
    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        rounded = (size_bytes + 511) % (1 << 64) // 512 * 512  # 64-bit arithmetic
        block = super().allocate(rounded or 512, alignment_bytes, stream)
        block.size_bytes = size_bytes
        return block


class _ThirtyTwoBitSize(CachingPool):
    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        block = super().allocate(size_bytes % (1 << 32) or 512, alignment_bytes, stream)
        block.size_bytes = size_bytes
        return block


class _EmptyBlockIsLive(CachingPool):
    def empty_address(self) -> int:
        return max((chunk.address for chunk in self.chunks), default=0)


class _AcceptsDoubleFree(CachingPool):
    def free_again(self, block: Block, stream: Stream) -> None:
        self.cache(block, stream)


class _ScansAllChunks(CachingPool):
    def free(self, block: Block, stream: Stream) -> None:
        self.ledger.step(len(self.chunks))  # looks for the block's chunk in a list
        super().free(block, stream)


class _WaitsWithoutSearching(CachingPool):
    def if_usable(self, cached: CachedBlock | None, stream: Stream) -> CachedBlock | None:
        if cached is None or all(guard.stream is stream or self.is_done(guard) for guard in cached.guards):
            return super().if_usable(cached, stream)
        self.free_lists.put(cached)  # it is settled before out of memory is reported, and not looked for again
        return None


def _pool(name: str, upstream: str, mechanism: str, pool: type[CachingPool]) -> Fault:
    return Fault(f"pool.{name}", upstream, mechanism, Parts(pool=pool))


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
    _pool("no_squeeze", "NVIDIA/cccl#4222", "Out of memory is reported with the cache still full.", _NoSqueeze),
    _pool(
        "no_sharing", "NVIDIA/cccl#4420", "A neighbour's cache on the same backing allocator is left alone.", _NoSharing
    ),
    _pool(
        "waits_without_searching",
        "pytorch/pytorch#189504",
        "Blocks that were waited for serve only the next request.",
        _WaitsWithoutSearching,
    ),
    _pool(
        "skips_pending", "pytorch/pytorch#189504", "Freed blocks with work in flight are not waited for.", _SkipsPending
    ),
    _pool("no_smaller_chunk", "NVIDIA/cccl#4420", "Only the usual chunk size is tried.", _NoSmallerChunk),
    _pool("growth_ratchet", "NVIDIA/cccl#4420", "The next chunk's size survives the squeeze.", _RatchetingPool),
    _pool(
        "bookkeeper_orphan", "NVIDIA/cccl#4420", "Bookkeeping fails behind the allocation.", _OrphansOnBookkeeperFailure
    ),
    _pool("cached_counts_against_limit", "cupy/cupy#7678", "Cached bytes count as used.", _CachedCountsAgainstLimit),
    _pool("ignores_limit", "tensorflow/tensorflow#59176", "The limit is checked nowhere.", _IgnoresLimit),
    _pool(
        "squeezes_on_any_error", "NVIDIA/cccl#4420", "Any exception is taken for out of memory.", _SqueezesOnAnyError
    ),
    _pool(
        "destructor_forgets_cached",
        "NVIDIA/DALI#3402",
        "Free lists are not in the destructor.",
        _DestructorForgetsCached,
    ),
    _pool("trim_forgets_oversized", "rapidsai/rmm#757", "Large cached blocks survive a trim.", _TrimForgetsOversized),
    _pool("managed_survives_trim", "cupy/cupy#4015", "Managed memory survives a trim.", _ManagedSurvivesTrim),
    _pool("trims_owned_chunks", "kokkos/kokkos#9443", "Memory goes before its last owner.", _TrimsOwnedChunks),
    _pool("never_settles_capture", "pytorch/pytorch#180395", "Frees of a capture stay deferred.", _NeverSettles),
    _pool("reuse_without_unlink", "NVIDIA/cccl#585", "A reused oversized block stays in the list.", _NoUnlink),
    _pool("carves_past_the_chunk", "llnl/Umpire#232", "One block more than fits is cut.", _CarvesPastTheChunk),
    _pool("ignores_alignment", "oneapi-src/unified-memory-framework#1118", "The alignment is lost.", _IgnoresAlignment),
    _pool("size_wraps", "pytorch/pytorch#182446", "Rounding up wraps to zero.", _SizeWraps),
    _pool("size_32_bit", "kokkos/kokkos#4715", "A 32-bit size in one path.", _ThirtyTwoBitSize),
    _pool("empty_block_is_live", "kokkos/kokkos#216", "A zero-byte block is somebody else's.", _EmptyBlockIsLive),
    _pool("accepts_double_free", "NVIDIA/cub#329", "A second free is cached again.", _AcceptsDoubleFree),
    _pool("scans_all_chunks", "NVIDIA/cccl#4420", "Every free walks the list of chunks.", _ScansAllChunks),
    _counter(
        "subtracts_requested_size", "pytorch/pytorch#135726", "A free subtracts another size.", _SubtractsRequestedSize
    ),
    _counter("forgets_blocks", "NVIDIA/TensorRT-LLM#12834", "The block count is not updated.", _ForgetsBlocks),
    _counter("held_never_falls", "LLNL/Umpire#539", "Returned memory is still counted.", _HeldNeverFalls),
    _counter("held_falls_twice", "rapidsai/rmm#2404", "A counter underflows.", _HeldFallsTwice),
)
