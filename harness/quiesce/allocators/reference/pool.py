"""The caching pool: size classes, oversized blocks, chunks, squeeze and retry, trim, reuse in stream order.

It makes every promise a pool can make. The shape is that of Thrust's ``disjoint_unsynchronized_pool_resource``
(upstream: NVIDIA/cccl#4222) with the stream order of RMM's and PyTorch's pools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from quiesce.allocators.reference.backing import BackingAllocator, FailureInjector
from quiesce.allocators.reference.chunks import CachedBlock, Chunk, FreeLists, Growth, Guard, class_of, record_guards
from quiesce.allocators.reference.ledger import CallRejected, Ledger, MemoryExhausted
from quiesce.allocators.reference.objects import Block, Capture, KeptBlock, Stream
from quiesce.allocators.reference.streams import Streams
from quiesce.model.operations import FailurePoint
from quiesce.model.outcomes import INVALID_VALUE

_Result = TypeVar("_Result")
_BOOKKEEPER: Final = FailurePoint.BOOKKEEPER


class CachingPool:
    """A pool above one :class:`BackingAllocator`.

    ``limit_bytes`` caps what it holds; cached bytes never count against a request. Methods raise
    :class:`MemoryExhausted` and whatever the backing allocator raises.
    """

    growth_type: type[Growth] = Growth
    free_lists_type: type[FreeLists] = FreeLists

    def __init__(
        self,
        backing: BackingAllocator,
        streams: Streams,
        ledger: Ledger,
        injector: FailureInjector,
        alignment_bytes: int,
        limit_bytes: int | None = None,
    ) -> None:
        self.backing = backing
        self.streams = streams
        self.ledger = ledger
        self.injector = injector
        self.alignment_bytes = alignment_bytes
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.live_bytes = 0
        self.live_blocks = 0
        self.growth = self.growth_type()
        self.free_lists = self.free_lists_type(ledger)
        self.chunks: dict[Chunk, None] = {}
        self.idle: dict[Chunk, None] = {}
        self.chunks_of_class: Counter[int] = Counter()
        self._open: dict[int, Chunk] = {}  # by class: the chunk that still has blocks to carve
        self.deferred: list[Block] = []
        self.is_released = False
        backing.register(self, self.squeeze)
        streams.captures.when_over[self] = self.settle_deferred

    # -- requests --------------------------------------------------------------------------------------------------

    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        """Return a block for ``stream``. ``size_bytes`` is at least 1."""
        alignment = max(alignment_bytes, self.alignment_bytes)
        size_class = class_of(size_bytes, alignment)
        if stream.capture is not None:
            footprint = size_class or self.backing.footprint(size_bytes)
            kept = stream.capture.take(self, footprint, alignment, stream)
            if kept is not None:
                return self._allocate_kept(kept, size_bytes, stream)
        if size_class is None:
            cached = self._oversized(size_bytes, alignment, stream)
        else:
            cached = self._classed(size_class, stream)
        block = Block(cached.address, size_bytes, cached.footprint_bytes, self.backing.kind, stream, self, cached.chunk)
        try:
            self._order_after_guards(block, cached, stream)
        except CallRejected:
            self._keep(cached)
            raise
        block.capture = stream.capture
        self.count_allocated(block)
        return block

    def _allocate_kept(self, kept: KeptBlock, size_bytes: int, stream: Stream) -> Block:
        """Return a block on memory that the same capture freed before."""
        last = kept.block
        block = Block(last.address, size_bytes, last.footprint_bytes, last.kind, stream, self, last.origin)
        block.capture, block.behind, block.earlier = last.capture, kept.behind, (*last.earlier, last)
        self.count_allocated(block)
        return block

    def free(self, block: Block, stream: Stream) -> None:
        """Keep a block for reuse, guarded by events behind the work that uses it."""
        self.count_freed(block)
        if block.capture is not None and self.is_of_graph(block, block.capture, stream):
            block.capture.keep(block, self)
        else:
            self._keep_free(block, stream)

    def _keep_free(self, block: Block, stream: Stream) -> None:
        if self.must_defer(block, stream):
            self.deferred.append(block)
        else:
            self.cache(block, stream)

    def is_of_graph(self, block: Block, capture: Capture, stream: Stream) -> bool:
        """Whether what was made in ``capture`` and is freed on ``stream`` has memory that its graph runs on.

        ``upstream:`` tracel-ai/cubecl#1612; what CUDA itself allocates in a capture is the graph's as well (CUDA C++
        Programming Guide, "Graph Memory Nodes").
        """
        return capture.is_needed and bool(block.earlier or (block.captured_on and stream.capture is capture))

    def take_back(self, kept: KeptBlock) -> None:
        """Keep a graph's memory for anybody, guarded by events behind the graph's runs: the graph is gone."""
        if self.is_released:
            return
        block = kept.block
        block.captured_on.clear()
        for owner in block.earlier:
            block.uses.update(owner.uses)
        self._keep_free(block, self._home(block))

    def must_defer(self, block: Block, stream: Stream) -> bool:
        """Whether the block waits for a capture to end.

        It does where a capture uses it on another stream, and where no event can be recorded behind a use: on a
        captured stream it could never be asked, on a destroyed one, or on a legacy default stream that a capture
        blocks, recording is refused (upstream: pytorch/pytorch#155398 defers no more than that).
        """
        if not self.streams.captures.any_active:
            return False
        return not block.captured_on <= {stream} or not all(self.streams.runs_work(user) for user in block.uses)

    def free_again(self, block: Block, stream: Stream) -> None:
        """Refuse a block that was freed before."""
        raise CallRejected(INVALID_VALUE)

    def empty_address(self) -> int:
        """Return the address of a block of no bytes: null, which owns nothing (``cudaMalloc`` with size 0)."""
        return 0

    def trim(self) -> None:
        """Release every idle chunk whose work is complete, without waiting for work in flight."""
        self.give_back(self.ready_chunks())

    def squeeze(self) -> None:
        """Release every idle chunk, waiting for work in flight where its memory could serve a request."""
        self.give_back(self.ready_chunks())
        if not self.streams.captures.any_active:
            self.give_back(list(self.idle))

    def release(self) -> None:
        """Give everything back, blocks in the sequence's hands included: the pool is being destroyed.

        It waits for the device, which a capture forbids: then the pool stays as it is.
        """
        self.streams.synchronize_device(self.backing.device)
        self.backing.unregister(self)
        del self.streams.captures.when_over[self]
        self.deferred.clear()
        self.is_released = True
        self.give_back(list(self.chunks))

    def count_allocated(self, block: Block) -> None:
        """Bring the pool's own counters up to date."""
        self.live_bytes += block.footprint_bytes
        self.live_blocks += 1

    def count_freed(self, block: Block) -> None:
        """Bring the pool's own counters up to date."""
        self.live_bytes -= block.footprint_bytes
        self.live_blocks -= 1

    # -- finding a block -------------------------------------------------------------------------------------------

    def _classed(self, size_class: int, stream: Stream) -> CachedBlock:
        cached = self.if_usable(self.free_lists.take(size_class, stream), stream)
        if cached is None:
            cached = self._carve(size_class, stream)
        if cached is None:
            self._grow(size_class)
            cached = self._carve(size_class, stream)
            assert cached is not None
        self._take_from_chunk(cached)
        return cached

    def if_usable(self, cached: CachedBlock | None, stream: Stream) -> CachedBlock | None:
        """Return a cached block, or keep it where ``stream`` would have to wait for it and cannot.

        It is captured, or a legacy default stream that a capture blocks, and work outside still uses the block: "only
        implicit in-stream ordering dependencies are allowed to cross the boundary" of a capture
        (``cudaErrorStreamCaptureIsolation``), and a graph runs behind none of them.
        """
        if cached is None or self.streams.runs_work(stream) or all(self.is_done(guard) for guard in cached.guards):
            return cached
        self.free_lists.put(cached)
        return None

    def _take_from_chunk(self, cached: CachedBlock) -> None:
        cached.chunk.cached.pop(cached, None)
        self.idle.pop(cached.chunk, None)

    def _carve(self, size_class: int, stream: Stream) -> CachedBlock | None:
        chunk = self._open.get(size_class)
        if chunk is None:
            return None
        self.ledger.step()
        cached = CachedBlock(chunk.address + chunk.carved * size_class, size_class, chunk, stream)
        chunk.carved += 1
        if chunk.carved == chunk.count:
            del self._open[size_class]
        return cached

    def _grow(self, size_class: int) -> None:
        usual = self.growth.next_count(size_class)
        for count in self.chunk_counts(size_class, usual):
            try:
                chunk = self._new_chunk(size_class * count, size_class, size_class, count)
            except MemoryExhausted:
                continue
            self._open[size_class] = chunk
            self.growth.grew(size_class, count)
            return
        raise MemoryExhausted

    def chunk_counts(self, size_class: int, usual: int) -> Iterator[int]:
        """Yield the chunk sizes to try, in blocks: the usual one, then halves down to a single block."""
        while usual:
            yield usual
            usual //= 2

    def _oversized(self, size_bytes: int, alignment: int, stream: Stream) -> CachedBlock:
        size = self.backing.footprint(size_bytes)
        cached = self.if_usable(self.take_oversized(size, alignment, stream), stream)
        if cached is None:
            chunk = self._new_chunk(size, alignment, size, 1)
            chunk.carved = 1
            cached = CachedBlock(chunk.address, size, chunk, stream)
        self._take_from_chunk(cached)
        return cached

    def take_oversized(self, size: int, alignment: int, stream: Stream) -> CachedBlock | None:
        """Return a cached oversized block that serves the request, or None."""
        cached = self.free_lists.take_oversized(size, stream)
        if cached is not None and cached.address % alignment:
            self.free_lists.put(cached)
            return None
        return cached

    # -- the backing allocator ------------------------------------------------------------------------------------

    def _new_chunk(self, size_bytes: int, alignment: int, class_bytes: int, count: int) -> Chunk:
        return self.with_reclaim(lambda: self.obtain(size_bytes, alignment, class_bytes, count))

    def obtain(self, size_bytes: int, alignment: int, class_bytes: int, count: int) -> Chunk:
        """Take a chunk from the backing allocator. Its bookkeeping comes first, so that no failure can orphan it."""
        footprint = self.backing.footprint(size_bytes)
        if self.limit_bytes is not None and self.held_bytes + footprint > self.limit_bytes:
            raise MemoryExhausted
        self.injector.meet(_BOOKKEEPER)
        with self.streams.captures.relaxed():
            address = self.backing.allocate(size_bytes, alignment)
        return self.adopt(Chunk(address, footprint, class_bytes, count))

    def adopt(self, chunk: Chunk) -> Chunk:
        """Put a chunk into the books."""
        self.chunks[chunk] = None
        self.chunks_of_class[chunk.class_bytes] += 1
        self.held_bytes += chunk.footprint_bytes
        return chunk

    def with_reclaim(self, attempt: Callable[[], _Result]) -> _Result:
        """Attempt, and on out of memory again after each way of reclaiming; any other failure passes through."""
        for reclaim in self.reclaim_steps():
            try:
                return attempt()
            except MemoryExhausted:
                reclaim()
        return attempt()

    def reclaim_steps(self) -> tuple[Callable[[], None], ...]:
        """Return the ways to make room, the cheapest first."""
        return (self.squeeze, lambda: self.backing.relieve(self))

    def ready_chunks(self) -> list[Chunk]:
        """Return the idle chunks that no work in flight uses."""
        capturing = self.streams.captures.any_active
        return [chunk for chunk in self.idle if self.is_ready(chunk, capturing=capturing)]

    def is_ready(self, chunk: Chunk, *, capturing: bool) -> bool:
        """Whether no work in flight uses an idle chunk. A capture forbids asking, so then guarded chunks are not."""
        for cached in chunk.cached:
            for guard in cached.guards:
                self.ledger.step()
                if capturing or not self.streams.is_complete(guard.event):
                    return False
            self.destroy_guards(cached)
        return True

    def give_back(self, chunks: Iterable[Chunk]) -> None:
        """Release chunks once no work uses them."""
        for chunk in chunks:
            self.ledger.step()
            self.wait_for_work(chunk)
            for cached in chunk.cached:
                self.free_lists.discard(cached)
                self.destroy_guards(cached)
            if self._open.get(chunk.class_bytes) is chunk:
                del self._open[chunk.class_bytes]
            del self.chunks[chunk]
            self.idle.pop(chunk, None)
            self.chunks_of_class[chunk.class_bytes] -= 1
            if not self.chunks_of_class[chunk.class_bytes]:
                del self.chunks_of_class[chunk.class_bytes]
                self.growth.forget(chunk.class_bytes)
            self.held_bytes -= chunk.footprint_bytes
            with self.streams.captures.relaxed():
                self.backing.free(chunk.address)

    def wait_for_work(self, chunk: Chunk) -> None:
        """Block until no work uses the chunk; only then may its memory go."""
        for cached in chunk.cached:
            for guard in cached.guards:
                if not self.is_done(guard):  # or its stream may be gone, and there is nothing to wait for
                    self.streams.synchronize_event(guard.event)

    # -- stream order ----------------------------------------------------------------------------------------------

    def cache(self, block: Block, stream: Stream) -> None:
        """Put a freed block on the list of ``stream``."""
        assert isinstance(block.origin, Chunk)
        cached = CachedBlock(
            block.address, block.footprint_bytes, block.origin, stream, self.make_guards(block, stream)
        )
        self._keep(cached)

    def _keep(self, cached: CachedBlock) -> None:
        chunk = cached.chunk
        chunk.cached[cached] = None
        if chunk.idle:
            self.idle[chunk] = None
        self.free_lists.put(cached)

    def make_guards(self, block: Block, stream: Stream) -> tuple[Guard, ...]:
        """Record an event behind the work of every stream that uses the block."""
        return tuple(record_guards(block, self.streams, self.ledger))

    def _order_after_guards(self, block: Block, cached: CachedBlock, stream: Stream) -> None:
        pending = [guard for guard in cached.guards if not self.is_done(guard)]
        for guard in pending:
            if not self.is_ordered_already(guard, stream):
                self.wait_for_guard(stream, guard)
        if pending:
            self.inherit(block, stream)
        self.destroy_guards(cached)

    def is_ordered_already(self, guard: Guard, stream: Stream) -> bool:
        """Whether work on ``stream`` comes behind the guarded work anyway: the same stream, not just its handle."""
        return guard.stream is stream

    def is_done(self, guard: Guard) -> bool:
        """Whether the guarded work is complete, so that nobody waits for a stream that may be gone."""
        with self.streams.captures.relaxed():
            return self.streams.is_complete(guard.event)

    def inherit(self, block: Block, stream: Stream) -> None:
        """Let whoever gets the block after this owner wait for what this owner waits for."""
        block.uses[stream] = None

    def wait_for_guard(self, stream: Stream, guard: Guard) -> None:
        """Make ``stream`` wait for work that still uses a block that it is about to get."""
        self.streams.wait(stream, guard.event)

    def destroy_guards(self, cached: CachedBlock) -> None:
        """Destroy the events of a cached block."""
        for guard in cached.guards:
            self.streams.destroy_event(guard.event)
        cached.guards = ()

    def settle_deferred(self) -> None:
        """Cache what was freed during a capture; no capture is going on any more."""
        waiting, self.deferred = self.deferred, []
        for block in waiting:
            self.cache(block, self._home(block))

    def _home(self, block: Block) -> Stream:
        """Return the stream in whose order a block is kept: its own, or where that is gone the default one."""
        return block.stream if block.stream.alive else self.streams.defaults[block.stream.device]
