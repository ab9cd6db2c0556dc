"""The bench: a machine that is driven by request lines."""

from __future__ import annotations

from typing import TypeVar

from quiesce.allocators.reference.machine import Machine
from quiesce.allocators.reference.world import Parts
from quiesce.model import operations as ops
from quiesce.model.backend import DeviceProfile
from quiesce.model.gauges import Gauge, Source, best_reading
from quiesce.model.observations import Observation
from quiesce.model.outcomes import Allocated, Outcome, describe
from quiesce.model.requests import parse_request

_Seen = TypeVar("_Seen")


class Bench:
    """A machine, the outcomes of what it was asked for, and what its ledger saw."""

    def __init__(self, profile: DeviceProfile, parts: Parts) -> None:
        self.machine = Machine(profile, parts)
        self.seen: list[Observation] = []
        self._addresses: dict[str, int] = {}

    def __call__(self, *lines: str) -> str:
        """Perform request lines and return the last outcome in the words of case files."""
        outcome: Outcome | None = None
        for line in lines:
            operation = parse_request(line)
            reply = self.machine.perform(operation)
            self.seen += reply.observations
            outcome = reply.outcome
            if isinstance(outcome, Allocated) and isinstance(operation, ops.Allocate | ops.Stage):
                self._addresses[operation.slot] = outcome.address
        assert outcome is not None
        return describe(outcome)

    def make(self, *lines: str) -> None:
        """Perform request lines that all succeed."""
        for line in lines:
            assert self(line) in ("allocated", "done"), line

    def address(self, slot: str) -> int:
        """Return where a block was allocated last."""
        return self._addresses[slot]

    def gauge(self, gauge: Gauge) -> int:
        """Return the best reading of a gauge."""
        reading = best_reading(self.machine.readings(), gauge)
        assert reading is not None
        return reading

    @property
    def reserved(self) -> int:
        """Bytes held from the backing allocator, by the ledger; the claim agrees."""
        readings = self.machine.readings()
        assert readings[Gauge.RESERVED, Source.CLAIM] == readings[Gauge.RESERVED, Source.LEDGER]
        return readings[Gauge.RESERVED, Source.LEDGER]

    @property
    def pinned(self) -> int:
        """Pinned bytes held from the backing allocator, by the ledger; the claim agrees."""
        readings = self.machine.readings()
        assert readings[Gauge.PINNED, Source.CLAIM] == readings[Gauge.PINNED, Source.LEDGER]
        return readings[Gauge.PINNED, Source.LEDGER]

    def observed(self, kind: type[_Seen]) -> list[_Seen]:
        """Return what the ledger saw of one kind, and forget everything that it saw."""
        found: list[_Seen] = [observation for observation in self.seen if isinstance(observation, kind)]
        self.seen.clear()
        return found
