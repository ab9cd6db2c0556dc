"""Faults of streams, events and captures."""

from __future__ import annotations

from typing import Final

from quiesce.allocators.reference.captures import Captures
from quiesce.allocators.reference.ledger import CallRejected, Ledger
from quiesce.allocators.reference.objects import Capture, Event, Stream
from quiesce.allocators.reference.streams import Streams
from quiesce.allocators.reference.world import Fault, Parts
from quiesce.model.backend import Flavour
from quiesce.model.outcomes import CAPTURE_UNSUPPORTED


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


FAULTS: Final = (
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
)
