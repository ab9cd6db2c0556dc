"""Faults of pinned memory and staging."""

from __future__ import annotations

from collections import deque
from typing import Final

from quiesce.allocators.reference.chunks import Guard
from quiesce.allocators.reference.ledger import CallRejected
from quiesce.allocators.reference.objects import Block, Stream
from quiesce.allocators.reference.pinned_pool import PINNED_UNIT_BYTES, InFlight, PinnedPool, Stager
from quiesce.allocators.reference.world import Fault, Parts
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import INVALID_VALUE


class _AlwaysBuffers(Stager):
    def bring(self, source: Block, destination: Block, stream: Stream) -> None:
        self.through_buffer(source, destination, stream)


class _RefusesUnregistered(Stager):
    """It asks the runtime what the source is, and takes "nothing that I know" for an error."""

    def bring(self, source: Block, destination: Block, stream: Stream) -> None:
        if source.kind is MemoryKind.PAGEABLE:
            raise CallRejected(INVALID_VALUE)
        super().bring(source, destination, stream)


class _KeepsFailedDestination(Stager):
    def roll_back(self, destination: Block, stream: Stream) -> None:
        pass


class _TrimDoesNotLook(PinnedPool):
    def trim(self) -> None:
        self.give_back_free()


class _NoReference(PinnedPool):
    def make_guards(self, block: Block) -> deque[Guard]:
        return deque()


class _HeadOfLine(PinnedPool):
    """One queue for all streams: whoever waits at its head holds the rest up."""

    def put(self, entry: InFlight) -> None:
        for guard in entry.guards:
            first = next(iter(self.in_flight), guard.stream)
            self.in_flight.setdefault(first, deque()).append((guard, entry))
        if not entry.guards:
            super().put(entry)


class _RoundsToUnits(PinnedPool):
    def footprint(self, size_bytes: int) -> int:
        return -(-size_bytes // PINNED_UNIT_BYTES) * PINNED_UNIT_BYTES


class _NoReclaim(PinnedPool):
    def obtain(self, size: int) -> int:
        return self.from_backing(size)


class _AsksDuringCapture(PinnedPool):
    def collect(self) -> None:
        for waiting in list(self.in_flight.values()):
            while waiting and self.streams.is_complete(waiting[0][0].event):
                self.pass_guard(*waiting.popleft())
        self.in_flight = {stream: waiting for stream, waiting in self.in_flight.items() if waiting}


FAULTS: Final = (
    Fault("pinned.extra_buffer", "cupy/cupy#8090", "A pinned source is staged again.", Parts(stager=_AlwaysBuffers)),
    Fault(
        "pinned.refuses_unregistered",
        "cupy/cupy#8335",
        "Pageable memory is taken for an invalid pointer.",
        Parts(stager=_RefusesUnregistered),
    ),
    Fault(
        "pinned.keeps_failed_destination",
        "ROCm/rocm-systems#11642",
        "A failed request is not rolled back.",
        Parts(stager=_KeepsFailedDestination),
    ),
    Fault(
        "pinned.deferred_release", "cupy/cupy#8845", "A trim misses done copies.", Parts(pinned_pool=_TrimDoesNotLook)
    ),
    Fault("pinned.in_flight_reuse", "cupy/cupy#8789", "A copy holds no reference.", Parts(pinned_pool=_NoReference)),
    Fault("pinned.head_of_line", "cupy/cupy#8845", "The first copy holds the rest up.", Parts(pinned_pool=_HeadOfLine)),
    Fault(
        "pinned.rounds_to_units", "cupy/cupy#8090", "Sizes are rounded otherwise.", Parts(pinned_pool=_RoundsToUnits)
    ),
    Fault(
        "pinned.no_reclaim", "pytorch/pytorch#19222", "A full cache is out of memory.", Parts(pinned_pool=_NoReclaim)
    ),
    Fault(
        "pinned.asks_during_capture",
        "pytorch/pytorch#146924",
        "Events are queried in a capture.",
        Parts(pinned_pool=_AsksDuringCapture),
    ),
)
