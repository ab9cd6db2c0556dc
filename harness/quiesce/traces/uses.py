"""The uses of a block that may still conflict with a later one, part by part.

A part is a range of the block that the same uses touched. A use that comes before a later one of its part is kept only
where it wrote and the later one reads: whatever else is unordered with it is unordered with the later one as well. So a
use costs what it touches, however many uses went before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from quiesce.oracle.clocks import HappensBefore, StreamState
from quiesce.oracle.intervals import IntervalIndex
from quiesce.simulator.ledger import Record


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A use by the work that was just enqueued on a stream."""

    stream: StreamState
    number: int
    writes: bool
    record: Record

    def is_before(self, order: HappensBefore, stream: StreamState | None) -> bool:
        """Whether it comes before the work just enqueued on a stream (None: before the host goes on)."""
        timeline = self.stream.timeline
        known = stream.clock.get(timeline, 0) if stream is not None else 0
        return self.number <= known or not order.unfinished({timeline: self.number})

    def is_superseded(self, order: HappensBefore, later: Use) -> bool:
        """Whether a later use of the same part has every conflict that this one has."""
        return (later.writes or not self.writes) and self.is_before(order, later.stream)


_Part: TypeAlias = tuple[int, int, tuple[Use, ...]]
_PARTS_MIN: Final = 64


class Uses:
    """What is kept of the uses of one block."""

    def __init__(self, order: HappensBefore) -> None:
        self._order = order
        self._parts: IntervalIndex[tuple[Use, ...]] = IntervalIndex()
        self._parts_max = _PARTS_MIN

    def unordered(
        self, start: int, end: int, stream: StreamState | None, *, writes: bool
    ) -> Iterator[tuple[Use, int, int]]:
        """Yield the uses that conflict with one of ``[start, end)``, the earliest first, each with the range it shares.

        ``stream`` is where the work was just enqueued, None for the host.
        """
        shared: dict[Use, tuple[int, int]] = {}
        for first, last, uses in self._parts.overlapping(start, end):
            for use in uses:
                if writes or use.writes:
                    low, _ = shared.get(use, (max(first, start), 0))
                    shared[use] = low, min(last, end)
        for use in sorted(shared, key=lambda each: each.record.number):
            if not use.is_before(self._order, stream):
                yield use, *shared[use]

    def enter(self, start: int, end: int, use: Use) -> None:
        """Enter a use of ``[start, end)``."""
        before = self._parts.overlapping(start, end)
        self._parts.cut(start, end)
        self._add((low, high, (*self._kept(uses, use), use)) for low, high, uses in _divide(start, end, before))
        if len(self._parts) > self._parts_max:
            self._forget_complete()

    def _kept(self, uses: tuple[Use, ...], later: Use) -> Iterator[Use]:
        return (each for each in uses if not each.is_superseded(self._order, later))

    def _forget_complete(self) -> None:
        parts = list(self._parts)
        self._parts = IntervalIndex()
        self._add(
            (low, high, tuple(each for each in uses if not each.is_before(self._order, None)))
            for low, high, uses in parts
        )
        self._parts_max = max(_PARTS_MIN, 2 * len(self._parts))

    def _add(self, parts: Iterable[_Part]) -> None:
        """Add parts in order; neighbours that the same uses touched become one, and what nobody uses none."""
        start = end = 0
        uses: tuple[Use, ...] = ()
        for low, high, touched in chain(parts, [(0, 0, ())]):
            if touched == uses and low == end:
                end = high
                continue
            if uses:
                self._parts.add(start, end, uses)
            start, end, uses = low, high, touched


def _divide(start: int, end: int, parts: Iterable[_Part]) -> Iterator[_Part]:
    """Yield the parts within ``[start, end)``, and between them what nobody has used."""
    for first, last, uses in parts:
        if start < first:
            yield start, first, ()
        yield max(start, first), min(last, end), uses
        start = last
    if start < end:
        yield start, end, ()
