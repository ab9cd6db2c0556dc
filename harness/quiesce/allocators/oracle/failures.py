"""Failures that are armed below the allocator: how many calls they are away, and whether one was met for certain."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.memory import MemoryModel
from quiesce.model import operations as ops
from quiesce.model.gauges import Gauge, best_reading
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused
from quiesce.model.operations import InjectedError
from quiesce.model.outcomes import Allocated, OutOfMemory, describe
from quiesce.model.wording import bytes_in_words

_GIVES_BACK: Final = (ops.Trim, ops.DestroyPool, ops.DestroyStream, ops.DestroyGraph, ops.DestroyInstance, ops.Finalize)
"""Requests that may give memory back in which no block ever was."""
_CALLS: Final = (BackingAllocated, BackingRefused, BackingFreed)


@dataclass(slots=True)
class ArmedFailure:
    """A failure that waits below the allocator; ``calls_left`` bounds the calls up to the one that fails."""

    error: InjectedError
    calls_left: int
    in_doubt: bool = False
    """Whether it may have been met unseen: by a call that gave memory back, or in the place of another failure."""

    def follow(self, change: Change, memory: MemoryModel, capacity_bytes: int, *, calls_are_seen: bool) -> None:
        """Count the calls of one operation, and note on ``change`` what it did instead of passing a foreign error on.

        It was served, or out of memory although there was enough and nothing else was refused. Or it did more at the
        backing allocator after the error.

        Where calls are not seen, any operation may have made some: one that tidies up may have met the failure, and
        need not fail for it. A call that was to give memory back and failed is not seen either.
        """
        mistaken = isinstance(change.outcome, OutOfMemory) and _was_refused_with_room(change, memory, capacity_bytes)
        may_give_back = memory.was_anything_freed or isinstance(change.operation, _GIVES_BACK)
        if (isinstance(change.outcome, Allocated) or mistaken) and not self.in_doubt:
            met = self.calls_left <= _certain_calls(change)
            sure = mistaken or not may_give_back or _was_first_refused_with_room(change, memory, capacity_bytes)
            if met and sure and self.error is InjectedError.FOREIGN:
                change.instead_of_error = describe(change.outcome)
        change.instead_of_error = change.instead_of_error or self._calls_after(change, memory, capacity_bytes)
        freed = any(isinstance(seen, BackingFreed) for seen in change.observations)
        self.in_doubt |= not calls_are_seen or freed or may_give_back
        self.calls_left -= len(change.asks)

    def _calls_after(self, change: Change, memory: MemoryModel, capacity_bytes: int) -> str:
        """Say what an allocation did at the backing allocator after the call that certainly failed for this.

        It may give back what it took itself, and what was to go back before.
        """
        if self.error is not InjectedError.FOREIGN or self.in_doubt or not isinstance(change.operation, ops.Allocate):
            return ""
        calls = [each for each in change.observations if isinstance(each, _CALLS)]
        before, error, after = calls[: self.calls_left - 1], calls[self.calls_left - 1 :][:1], calls[self.calls_left :]
        if not error or not after or not all(isinstance(each, BackingAllocated) for each in before):
            return ""
        refused, released = error[0], sum(isinstance(each, BackingFreed) for each in after)
        if not isinstance(
            refused, BackingRefused
        ):  # the error is not seen: it was met by what gave memory back, if at all
            return ""
        room_bytes = capacity_bytes - change.asks[len(before)].held_bytes
        if not _had_a_hole(change.operation, refused.size_bytes, room_bytes, len(memory.backing) + released):
            return ""
        taken = {each.address for each in calls if isinstance(each, BackingAllocated)}
        for each in after:
            if not isinstance(each, BackingFreed):
                return f"another request to the backing allocator, for {bytes_in_words(each.size_bytes)}"
            if each.address not in taken | memory.leaving:
                return f"{bytes_in_words(each.size_bytes)} given back to the backing allocator"
        return ""


def _was_refused_with_room(change: Change, memory: MemoryModel, capacity_bytes: int) -> bool:
    """Whether one call of an allocation was refused, and not for lack of memory: somewhere was a hole for it.

    A device that looks at its room first need not come to the failure.
    """
    refused = [seen.size_bytes for seen in change.observations if isinstance(seen, BackingRefused)]
    if not isinstance(change.operation, ops.Allocate) or len(refused) != 1:
        return False
    if any(isinstance(seen, BackingFreed) for seen in change.observations):
        return False
    held = [held.size_bytes for _, _, held in memory.backing]
    return _had_a_hole(change.operation, refused[0], capacity_bytes - sum(held), len(held))


def _was_first_refused_with_room(change: Change, memory: MemoryModel, capacity_bytes: int) -> bool:
    """Whether the first call of an allocation was refused although there was a hole for it, whatever came then."""
    seen = [each for each in change.observations if isinstance(each, BackingAllocated | BackingRefused | BackingFreed)]
    if not isinstance(change.operation, ops.Allocate) or not seen or not isinstance(seen[0], BackingRefused):
        return False
    ranges = len(memory.backing) + sum(isinstance(each, BackingFreed) for each in seen)
    return _had_a_hole(change.operation, seen[0].size_bytes, capacity_bytes - change.asks[0].held_bytes, ranges)


def _had_a_hole(operation: ops.Allocate, size_bytes: int, room_bytes: int, ranges: int) -> bool:
    """Whether ``size_bytes`` fit somewhere, however the ranges that are held divide the room."""
    needed_bytes = size_bytes + (operation.alignment_bytes or 0)  # wherever the hole begins
    return needed_bytes <= room_bytes // (ranges + 1)


def _certain_calls(change: Change) -> int:
    """Return how many calls for memory came for certain before one that gave memory back, which can fail as well."""
    before = list(itertools.takewhile(lambda seen: not isinstance(seen, BackingFreed), change.observations))
    calls = sum(isinstance(seen, BackingAllocated | BackingRefused) for seen in before)
    if len(before) < len(change.observations):
        return calls
    return max(calls, int(rose(change, Gauge.RESERVED) or rose(change, Gauge.PINNED)))


def rose(change: Change, gauge: Gauge) -> bool:
    """Whether a gauge is known to have risen."""
    before, after = (best_reading(readings, gauge) for readings in (change.before, change.after))
    return before is not None and after is not None and after > before
