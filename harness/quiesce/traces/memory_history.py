"""Memory over time, from the records of a ledger, thin enough to be drawn.

A run is divided into :data:`PARTS_MAX` parts of equally many records. The moments of the lowest and of the highest
total of each part are kept, so no peak is lost. A record costs one entry of a list until its part ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, TypeAlias

from quiesce.program_run import OTHER, Event, MemoryHistory, MemorySeries
from quiesce.simulator.ledger import Flag, LiveThing, Record, Seen, Thing

PARTS_MAX: Final = 240
"""More would be narrower than what a screen shows."""
SERIES_MAX: Final = 8
"""More colours can't be told apart; what is beyond them is one series."""
EVENTS_MAX: Final = 60
"""So many refusals, and so many marks, are kept."""

_Key: TypeAlias = tuple[int, Thing, int | None]
"""What is counted together: a device, a kind, a stream (None: no stream orders it)."""


@dataclass(slots=True)
class _Events:
    kept: list[Event] = field(default_factory=list)
    count: int = 0

    def add(self, number: int, text: str) -> None:
        self.count += 1
        if len(self.kept) < EVENTS_MAX:
            self.kept.append(Event(number, text))


class MemoryRecorder:
    """Takes records in order. ``first`` is the number of the first that is kept, ``end`` follows the last."""

    def __init__(self, first: int, end: int) -> None:
        self._first = first
        self._width = max(1, -(-(end - first) // PARTS_MAX))
        self._part_end = first + self._width
        self._blocks: dict[int, tuple[_Key, int]] = {}
        self._changes: list[tuple[int, _Key, int]] = []
        self._held: dict[_Key, int] = {}
        self._moments: list[tuple[int, Mapping[_Key, int]]] = []
        self._peaks: dict[_Key, int] = {}
        self._peak = first, 0
        self._made: Counter[_Key] = Counter()
        self._freed_unseen: Counter[_Key] = Counter()
        self._refused = _Events()
        self._marks = _Events()

    def see(self, record: Record) -> None:
        """Enter one record."""
        seen = record.seen
        if seen is Seen.ALLOCATED:
            key = record.device, record.thing, record.stream if record.flags & Flag.ORDERED else None
            self._blocks[record.address] = key, record.size_bytes
            self._made[key] += 1
            self._change(record.number, key, record.size_bytes)
        elif seen is Seen.FREED:
            known = self._blocks.pop(record.address) if record.address in self._blocks else None
            key, size_bytes = known or self._unseen(record)
            self._change(record.number, key, -size_bytes)
        elif seen is Seen.REFUSED:
            self._refused.add(record.number, f"{record.function} of {record.size_bytes:,} bytes")
        elif seen is Seen.MARK:
            self._marks.add(record.number, record.function)

    def _unseen(self, record: Record) -> tuple[_Key, int]:
        """Note a free of what was allocated before the first record that is kept."""
        key = record.device, record.thing, None
        self._freed_unseen[key] += record.size_bytes
        return key, record.size_bytes

    def _change(self, number: int, key: _Key, size_bytes: int) -> None:
        if number >= self._part_end:
            self._close_part()
            self._part_end = number - (number - self._first) % self._width + self._width
        self._changes.append((number, key, size_bytes))

    def _close_part(self) -> None:
        """Keep the moments of the lowest and of the highest total."""
        changes, held, peaks = self._changes, self._held, self._peaks
        if not changes:
            return
        totals = list(accumulate((change for _, _, change in changes), initial=sum(held.values())))[1:]
        lowest, highest = totals.index(min(totals)), totals.index(max(totals))
        for place, (number, key, change) in enumerate(changes):
            now = held[key] = held.get(key, 0) + change
            if now > peaks.setdefault(key, 0):
                peaks[key] = now
            elif not now:
                del held[key]
            if place in (lowest, highest):
                self._moments.append((number, dict(held)))
        if totals[highest] > self._peak[1]:
            self._peak = changes[highest][0], totals[highest]
        changes.clear()

    def history(self, live: Iterable[LiveThing]) -> MemoryHistory:
        """Return what was seen. ``live`` is what is left: it tells what was held before the first record kept."""
        last = self._changes[-1][0] if self._changes else 0
        self._close_part()
        if self._moments and self._moments[-1][0] < last:
            self._moments.append((last, dict(self._held)))
        before = self._held_before(live) if self._first else {}
        peaks = {key: self._peaks.get(key, 0) + before.get(key, 0) for key in {*self._peaks, *before}}
        shown, rest = _divide(peaks)
        series = [self._series([key], before, peaks[key]) for key in shown]
        if rest:
            series.append(self._series(rest, before, None))
        number, peak_bytes = self._peak
        return MemoryHistory(
            moments=tuple(number for number, _ in self._moments),
            series=tuple(series),
            peak_bytes=peak_bytes + sum(before.values()),
            peak_call=number,
            refused=tuple(self._refused.kept),
            refused_count=self._refused.count,
            marks=tuple(self._marks.kept),
            marks_count=self._marks.count,
        )

    def _series(self, keys: Sequence[_Key], before: Mapping[_Key, int], peak_bytes: int | None) -> MemorySeries:
        values = tuple(sum(held.get(key, 0) + before.get(key, 0) for key in keys) for _, held in self._moments)
        device, thing, stream = keys[0]
        is_one = peak_bytes is not None
        return MemorySeries(
            kind=thing.name.lower() if is_one else OTHER,
            device=device if is_one else None,
            stream=stream if is_one else None,
            bytes=values,
            peak_bytes=max(values, default=0) if peak_bytes is None else peak_bytes,
            allocations=sum(self._made[key] for key in keys),
        )

    def _held_before(self, live: Iterable[LiveThing]) -> Mapping[_Key, int]:
        """Return what was held before the first record kept: what of it was seen to go, and what never went."""
        before = self._freed_unseen.copy()
        for left in live:
            if left.thing.is_memory and left.thing is not Thing.PHYSICAL and left.address not in self._blocks:
                before[left.device, left.thing, None] += left.size_bytes
        return before


def _divide(peaks: Mapping[_Key, int]) -> tuple[list[_Key], list[_Key]]:
    """Return what has a series of its own, which is the largest, and the rest."""
    ranked = sorted(peaks, key=lambda key: (-peaks[key], _order(key)))
    shown = len(ranked) if len(ranked) <= SERIES_MAX else SERIES_MAX - 1
    return sorted(ranked[:shown], key=_order), sorted(ranked[shown:], key=_order)


def _order(key: _Key) -> tuple[int, int, int]:
    device, thing, stream = key
    return device, thing, -1 if stream is None else stream
