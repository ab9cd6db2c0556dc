"""The uses of a block that may still conflict with a later one, part by part.

A part is a range of the block that the same uses touched. A use that comes before a later one of its part is kept only
where it has conflicts that the later one has not: whatever else is unordered with it is unordered with the later one
as well. So a use costs what it touches, however many uses went before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from quiesce.oracle.clocks import HappensBefore, StreamState
from quiesce.oracle.intervals import IntervalIndex
from quiesce.simulator.ledger import Record
from quiesce.simulator.touched_log import Touch, Touched
from quiesce.traces.footprints import Mask, shared_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A use by the work that was just enqueued on a stream; by the host where ``stream`` is None.

    ``touched`` is all that a launch touched, None of other work; ``place`` is where the kernel does this. Of a use
    with a ``mask`` only the bytes that it means are used.
    """

    stream: StreamState | None
    number: int
    touch: Touch
    record: Record
    touched: Touched | None = None
    place: str = ""
    mask: Mask | None = None

    def is_before(self, order: HappensBefore, stream: StreamState | None) -> bool:
        """Whether it comes before the work just enqueued on a stream (None: before the host goes on)."""
        if self.stream is None:
            return True
        timeline = self.stream.timeline
        known = stream.clock.get(timeline, 0) if stream is not None else 0
        return self.number <= known or not order.unfinished({timeline: self.number})

    def conflicts_with(self, other: Use) -> bool:
        """Whether the two must be in order where they use the same bytes.

        Volatile and relaxed accesses are how a kernel watches copies, and is watched by them.
        """
        if not (self.touch.writes or other.touch.writes) or (self.touch.is_strong and other.touch.is_strong):
            return False
        is_watched = any(use.touch in (Touch.STRONG_READ, Touch.STRONG_WRITE) for use in (self, other))
        return not is_watched or (self.touched is not None and other.touched is not None)

    def is_superseded(self, order: HappensBefore, later: Use) -> bool:
        """Whether a later use of the same part has every conflict that this one has."""
        covers = later.mask is None or later.mask == self.mask
        return covers and later.touch in (self.touch, Touch.WRITE) and self.is_before(order, later.stream)


_Part: TypeAlias = tuple[int, int, tuple[Use, ...]]
_PARTS_MIN: Final = 64
_KEPT_MAX: Final = 32
"""So many uses with masks are kept of one part, for they hardly ever supersede each other."""


class Uses:
    """What is kept of the uses of one block."""

    def __init__(self, order: HappensBefore) -> None:
        self._order = order
        self._parts: IntervalIndex[tuple[Use, ...]] = IntervalIndex()
        self._parts_max = _PARTS_MIN

    def unordered(self, start: int, end: int, later: Use) -> Iterator[tuple[Use, int, int]]:
        """Yield the uses that conflict with one of ``[start, end)``, the earliest first.

        Each comes with the first byte that both use, and how many bytes these are.
        """
        shared: dict[Use, tuple[int, int]] = {}
        known = self._parts.exactly(start, end)
        parts = self._parts.overlapping(start, end) if known is None else [(start, end, known)]
        for first, last, uses in parts:
            for use in uses:
                if not use.conflicts_with(later) or use.is_before(self._order, later.stream):
                    continue
                found = shared_bytes(max(first, start), min(last, end), use.mask, later.mask)
                if found is not None:
                    low, count = shared.get(use, (found[0], 0))
                    shared[use] = low, count + found[1]
        for use in sorted(shared, key=lambda each: each.record.number):
            yield use, *shared[use]

    def enter(self, start: int, end: int, use: Use) -> None:
        """Enter a use of ``[start, end)``; most programs use the same parts again and again."""
        known = self._parts.exactly(start, end)
        if known is not None:
            self._parts.change(start, (*self._kept(known, use), use))
            return
        before = self._parts.overlapping(start, end)
        self._parts.cut(start, end)
        self._add((low, high, (*self._kept(uses, use), use)) for low, high, uses in _divide(start, end, before))
        if len(self._parts) > self._parts_max:
            self._forget_complete()

    def _kept(self, uses: tuple[Use, ...], later: Use) -> list[Use]:
        kept = [each for each in uses if not each.is_superseded(self._order, later)]
        masked = [each for each in kept if each.mask is not None]
        dropped = set(masked[:-_KEPT_MAX])
        return [each for each in kept if each not in dropped]

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
