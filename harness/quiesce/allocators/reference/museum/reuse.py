"""Faults of stream order: memory handed out, or given back, before the work on it is done."""

from __future__ import annotations

from typing import Final

from quiesce.allocators.reference.chunks import CachedBlock, Chunk, Guard
from quiesce.allocators.reference.ledger import MemoryExhausted
from quiesce.allocators.reference.objects import Block, Stream
from quiesce.allocators.reference.pool import CachingPool
from quiesce.allocators.reference.world import Fault, Parts


class _IgnoresGuards(CachingPool):
    def wait_for_guard(self, stream: Stream, guard: Guard) -> None:
        pass


class _DropsDependency(CachingPool):
    def inherit(self, block: Block, stream: Stream) -> None:
        pass


class _ComparesHandles(CachingPool):
    def is_ordered_already(self, guard: Guard, stream: Stream) -> bool:
        return guard.stream.handle == stream.handle


class _ForgetsOnRefusal(CachingPool):
    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        try:
            return super().allocate(size_bytes, alignment_bytes, stream)
        except MemoryExhausted:  # what was gathered for the request stays on its stream's list, whose event is older
            for chunk in self.chunks:
                for cached in chunk.cached:
                    self.destroy_guards(cached)
            raise


class _GuardsFreeStreamOnly(CachingPool):
    def make_guards(self, block: Block, stream: Stream) -> tuple[Guard, ...]:
        for user in list(block.uses):
            if user is not stream:
                del block.uses[user]
        return super().make_guards(block, stream)


class _ReturnsInFlight(CachingPool):
    def wait_for_work(self, chunk: Chunk) -> None:
        pass


class _EventsOnFirstDevice(CachingPool):
    def make_guards(self, block: Block, stream: Stream) -> tuple[Guard, ...]:
        if block.uses:
            event = self.streams.create_internal_event(0)
            try:
                self.streams.record(event, next(iter(block.uses)))
            finally:
                self.streams.destroy_event(event)
        return super().make_guards(block, stream)


class _LeaksEvents(CachingPool):
    def destroy_guards(self, cached: CachedBlock) -> None:
        cached.guards = ()


def _reuse(name: str, upstream: str, mechanism: str, pool: type[CachingPool]) -> Fault:
    return Fault(f"reuse.{name}", upstream, mechanism, Parts(pool=pool))


FAULTS: Final = (
    _reuse("ignores_guards", "microsoft/onnxruntime#12913", "Reuse waits for nobody.", _IgnoresGuards),
    _reuse("drops_dependency", "rapidsai/rmm#2489", "A merged list forgets the donor's event.", _DropsDependency),
    _reuse("forgets_on_refusal", "rapidsai/rmm#2489", "A refused request unguards all blocks.", _ForgetsOnRefusal),
    _reuse("compares_handles", "rapidsai/rmm#2251", "A recycled handle passes for the old stream.", _ComparesHandles),
    _reuse(
        "guards_free_stream_only", "numba/numba#3508", "Uses on other streams are forgotten.", _GuardsFreeStreamOnly
    ),
    _reuse("returns_in_flight", "ggml-org/llama.cpp#22155", "A flush gives memory in use back.", _ReturnsInFlight),
    _reuse("events_on_first_device", "rapidsai/rmm#1306", "Events are made on the wrong device.", _EventsOnFirstDevice),
    _reuse("leaks_events", "LLNL/camp#71", "Events are erased and never destroyed.", _LeaksEvents),
)
