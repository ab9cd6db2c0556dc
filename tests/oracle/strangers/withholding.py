"""A backend that claims less than it could: what it withholds is neither told nor promised, and it stays correct."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from quiesce.model.backend import Backend, Capability, Closing, Context, Description, DeviceProfile, Promise, Reply
from quiesce.model.gauges import Gauge, Readings
from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    Observation,
    StreamSynchronized,
)
from quiesce.model.operations import Operation

_TOLD_BY: Final = {
    Capability.BACKING_LEDGER: (BackingAllocated, BackingFreed, BackingRefused),
    Capability.ORDER_LEDGER: (EventRecorded, EventWaited, EventCompleted, StreamSynchronized, DeviceSynchronized),
}


@dataclass(frozen=True)
class Withholding:
    """``backend`` without some of its claims."""

    backend: Backend
    name: str
    capabilities: frozenset[Capability] = frozenset()
    promises: frozenset[Promise] = frozenset()
    gauges: frozenset[Gauge] = frozenset()

    def describe(self) -> Description:
        whole = self.backend.describe()
        return replace(
            whole,
            name=self.name,
            capabilities=whole.capabilities - self.capabilities,
            promises=whole.promises - self.promises,
            gauges={gauge: by for gauge, by in whole.gauges.items() if gauge not in self.gauges},
        )

    def open(self, profile: DeviceProfile) -> WithholdingContext:
        return WithholdingContext(self.backend.open(profile), self)


class WithholdingContext:
    """A context whose replies lack what is withheld."""

    def __init__(self, context: Context, by: Withholding) -> None:
        self.context, self.by = context, by

    def perform(self, operation: Operation) -> Reply:
        reply = self.context.perform(operation)
        return Reply(reply.outcome, self.told(reply.observations))

    def readings(self) -> Readings:
        return self.read(self.context.readings())

    def close(self) -> Closing:
        closing = self.context.close()
        return Closing(self.told(closing.observations), self.read(closing.readings))

    def told(self, observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
        withheld = tuple(kind for by, kinds in _TOLD_BY.items() if by in self.by.capabilities for kind in kinds)
        return tuple(seen for seen in observations if not isinstance(seen, withheld))

    def read(self, readings: Readings) -> Readings:
        return {key: value for key, value in readings.items() if key[0] not in self.by.gauges}
