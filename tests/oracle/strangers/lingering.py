"""Pools that are destroyed with work in flight: nobody waits for that, and their memory goes back behind it."""

from __future__ import annotations

from quiesce.model.backend import DeviceProfile, Reply
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import ILLEGAL_STATE

from .adapter import Session, Stranger
from .captures import Refused
from .pool import Pool


class LingeringPools(Session):
    """Looks at every request whether what destroyed pools still have is idle by now."""

    def __init__(self, stranger: Stranger, profile: DeviceProfile) -> None:
        self.lingering: list[Pool] = []
        super().__init__(stranger, profile)

    @property
    def all_pools(self) -> list[Pool]:
        return [*super().all_pools, *self.lingering]

    def perform(self, operation: Operation) -> Reply:
        self.poll()
        return super().perform(operation)

    def poll(self) -> None:
        for pool in [] if self.captures.any_active else list(self.lingering):
            pool.trim()
            if not pool.chunks:
                pool.forget()
                self.lingering.remove(pool)

    def destroy_pool(self, slot: Slot) -> None:
        pool = self.pool(MemoryKind.DEVICE, slot)
        if any(block.pool is pool for block in self.blocks.values()):
            raise Refused(ILLEGAL_STATE)
        self.lingering.append(self.pools.pop(slot))
        self.poll()

    def readings(self) -> Readings:
        readings = dict(super().readings())
        readings[Gauge.RESERVED, Source.CLAIM] += sum(pool.held for pool in self.lingering)
        return readings


class BusyPoolsAreForgotten(LingeringPools):
    """What is busy when its pool is destroyed is never looked at again."""

    def __init__(self, stranger: Stranger, profile: DeviceProfile) -> None:
        self.is_destroying = False
        super().__init__(stranger, profile)

    def poll(self) -> None:
        if self.is_destroying:
            super().poll()

    def destroy_pool(self, slot: Slot) -> None:
        before, self.lingering, self.is_destroying = self.lingering, [], True
        super().destroy_pool(slot)
        self.lingering, self.is_destroying = before + self.lingering, False
