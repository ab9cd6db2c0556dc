"""Faults of stream order, of streams, events and captures, and of the memory of graphs.

Memory is handed out, or given back, before the work on it is done. What a capture allocated and freed goes to somebody
else, in the wrong order, or nowhere.
"""

from __future__ import annotations

from typing import Final

from quiesce.allocators.reference.captures import Captures
from quiesce.allocators.reference.chunks import CachedBlock, Chunk, Guard
from quiesce.allocators.reference.ledger import CallRejected, Ledger, MemoryExhausted
from quiesce.allocators.reference.objects import Block, Capture, Event, Keeper, Stream
from quiesce.allocators.reference.pool import CachingPool
from quiesce.allocators.reference.streams import Streams
from quiesce.allocators.reference.world import Fault, Parts
from quiesce.model.backend import Flavour
from quiesce.model.outcomes import CAPTURE_UNSUPPORTED


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


class _QueryLies(Streams):
    def is_idle(self, stream: Stream) -> bool:
        super().is_idle(stream)
        return True


class _NoLegacyOrder(Streams):
    def order_with_default(self, stream: Stream) -> None:
        pass

    def encompassed_by(self, default: Stream) -> list[Stream]:
        return [busy for busy in super().encompassed_by(default) if busy is default]


class _NotReadySticks(Streams):
    def __init__(self, devices: int, ledger: Ledger, captures: Captures, flavour: Flavour = Flavour.CUDA) -> None:
        super().__init__(devices, ledger, captures, flavour)
        self._stuck: set[Event] = set()

    def is_complete(self, event: Event) -> bool:
        if not super().is_complete(event):
            self._stuck.add(event)
        return event not in self._stuck


class _SynchronizesCapturing(Captures):
    def forbid_on(self, stream: Stream) -> None:
        pass


class _WrongCode(Captures):
    def forbid_captured(self, event: Event) -> None:
        if event.capture is not None:
            raise CallRejected(CAPTURE_UNSUPPORTED)


class _AcceptsUnjoined(Captures):
    def is_joined(self, capture: Capture) -> bool:
        return True


class _HandsMemoryOut(CachingPool):
    def is_of_graph(self, block: Block, capture: Capture, stream: Stream) -> bool:
        return False


class _OrderedByOrigin(Capture):
    def keep(self, block: Block, pool: Keeper) -> None:
        block.behind = self.progress_of(self.origin)
        block.captured_on.clear()
        super().keep(block, pool)


class _OrdersFreesByOrigin(Captures):
    capture_type = _OrderedByOrigin


class _KeepsAbandoned(Captures):
    def give_up(self, capture: Capture) -> None:
        pass


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
    Fault("stream.query_lies", "ROCm/rocm-systems#10943", "A stream says idle too early.", Parts(streams=_QueryLies)),
    Fault(
        "stream.no_legacy_order", "NVIDIA/cub#373", "The default stream orders nothing.", Parts(streams=_NoLegacyOrder)
    ),
    Fault(
        "stream.not_ready_sticks", "pytorch/pytorch#71616", "Not ready is remembered.", Parts(streams=_NotReadySticks)
    ),
    Fault(
        "capture.synchronizes",
        "pytorch/pytorch#159594",
        "A capturing stream can be waited for.",
        Parts(captures=_SynchronizesCapturing),
    ),
    Fault("capture.wrong_code", "kokkos/kokkos#8006", "A captured event answers 900.", Parts(captures=_WrongCode)),
    Fault(
        "capture.accepts_unjoined", "pytorch/pytorch#180395", "Unjoined work is lost.", Parts(captures=_AcceptsUnjoined)
    ),
    Fault(
        "graph.hands_memory_out",
        "tracel-ai/cubecl#1612",
        "What a graph runs on is handed out while it is there.",
        Parts(pool=_HandsMemoryOut),
    ),
    Fault(
        "graph.orders_frees_by_origin",
        "NVIDIA/warp#1418",
        "What a forked stream frees is ordered behind the capture's first stream.",
        Parts(captures=_OrdersFreesByOrigin),
    ),
    Fault(
        "graph.keeps_abandoned",
        "pytorch/pytorch#190308",
        "Memory of a capture that failed is kept forever.",
        Parts(captures=_KeepsAbandoned),
    ),
)
