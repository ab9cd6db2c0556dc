"""Calls inside the reference: how one fails, and the ledger that sees every backing call and counts steps.

The machine turns a failed call into an outcome. The ledger is independent of the components under study: they report
nothing to it; the layers below them do.
"""

from __future__ import annotations

from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
    HandleCreated,
    HandleDestroyed,
    HandleKind,
    Observation,
)
from quiesce.model.operations import MemoryKind


class CallFailed(Exception):
    """The root: a call that a real runtime answers with an error code."""


class MemoryExhausted(CallFailed):
    """There is no memory for the request (``cudaErrorMemoryAllocation``, ``std::bad_alloc``)."""


class CallRejected(CallFailed):
    """The call is refused with an error ``code`` of :data:`quiesce.model.outcomes.ERROR_CODES`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Ledger:
    """Observations since the last drain, and running totals."""

    def __init__(self) -> None:
        self._observations: list[Observation] = []
        self.held_bytes = dict.fromkeys(MemoryKind, 0)
        self.allocations = 0
        self.handles = dict.fromkeys(HandleKind, 0)
        self.backing_calls = 0
        self.steps = 0

    def step(self, count: int = 1) -> None:
        """Count elementary work: one look at one list entry, one arithmetic step on one block."""
        self.steps += count

    def see(self, observation: Observation) -> None:
        """Keep an observation and bring the totals up to date."""
        self._observations.append(observation)
        if isinstance(observation, BackingAllocated):
            self.held_bytes[observation.kind] += observation.size_bytes
            self.allocations += 1
            self.backing_calls += 1
        elif isinstance(observation, BackingFreed):
            self.held_bytes[observation.kind] -= observation.size_bytes
            self.allocations -= 1
            self.backing_calls += 1
        elif isinstance(observation, BackingRefused):
            self.backing_calls += 1
        elif isinstance(observation, HandleCreated):
            self.handles[observation.kind] += 1
        elif isinstance(observation, HandleDestroyed):
            self.handles[observation.kind] -= 1

    def drain(self) -> tuple[Observation, ...]:
        """Return the observations since the last call, oldest first."""
        if not self._observations:
            return ()
        seen = tuple(self._observations)
        self._observations.clear()
        return seen
