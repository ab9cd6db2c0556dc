"""Failures that are armed below the allocator: how many calls they are away, and whether one was met for certain."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from quiesce.gauges import Gauge, best_reading
from quiesce.observations import UpstreamAllocated, UpstreamFreed, UpstreamRefused
from quiesce.operations import InjectedError
from quiesce.oracle.change import Change
from quiesce.outcomes import Allocated


@dataclass(slots=True)
class ArmedFailure:
    """A failure that waits below the allocator; ``calls_left`` bounds the calls up to the one that fails."""

    error: InjectedError
    calls_left: int
    in_doubt: bool = False
    """Whether it may have been met unseen: by a call that gave memory back, or in the place of another failure."""

    def follow(self, change: Change, *, calls_are_seen: bool) -> None:
        """Count the calls of one operation, and note on ``change`` where its request was served in spite of one.

        Where calls are not seen, any operation may have made some: one that tidies up may have met the failure, and
        need not fail for it.
        """
        if isinstance(change.outcome, Allocated) and not self.in_doubt:
            met = self.calls_left <= _certain_calls(change)
            change.swallowed = met and self.error is InjectedError.FOREIGN
        self.in_doubt |= not calls_are_seen or any(isinstance(seen, UpstreamFreed) for seen in change.observations)
        self.calls_left -= len(change.asks)


def _certain_calls(change: Change) -> int:
    """Return how many calls for memory came for certain before one that gave memory back, which can fail as well."""
    before = list(itertools.takewhile(lambda seen: not isinstance(seen, UpstreamFreed), change.observations))
    calls = sum(isinstance(seen, UpstreamAllocated | UpstreamRefused) for seen in before)
    if len(before) < len(change.observations):
        return calls
    return max(calls, int(rose(change, Gauge.RESERVED) or rose(change, Gauge.PINNED)))


def rose(change: Change, gauge: Gauge) -> bool:
    """Whether a gauge is known to have risen."""
    before, after = (best_reading(readings, gauge) for readings in (change.before, change.after))
    return before is not None and after is not None and after > before
