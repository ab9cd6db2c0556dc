"""Memory over time, thin enough to be drawn, and who held it when a request ran out of memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, TypeAlias

from quiesce.model.findings import CallSite
from quiesce.model.program_run import HOLDERS_MAX, OTHER, Event, Holder, MemoryHistory, MemorySeries, OutOfMemory
from quiesce.model.wording import bytes_in_words, counted
from quiesce.simulator.judge.call_stacks import made_at
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.wording import things_in_words
from quiesce.simulator.runtime import Flag, Ledger, LiveThing, Record, Seen, Thing

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


_OUT_OF_MEMORY: Final = 2
"""cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY and hipErrorOutOfMemory."""
_OF_DEVICES: Final = (Thing.DEVICE, Thing.MANAGED)
"""Physical memory with a handle is counted where it is mapped: the mapping is recorded, the creation is not."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Something that was live. ``number`` is that of the one that made it; None: it was overwritten."""

    thing: Thing
    device: int
    size_bytes: int
    function: str
    number: int | None
    stack: int


class Exhaustion:
    """Takes records in order, and keeps what was live at the first refusal.

    What was made before the oldest record that is kept is found all the same: it is live at the end, or its free
    is seen after the refusal.
    """

    def __init__(self) -> None:
        self._refusal: Record | None = None
        self._live: dict[int, Record] = {}
        self._then: list[_Block] = []

    def see(self, record: Record) -> None:
        """Enter one record."""
        match record.seen:
            case Seen.ALLOCATED:
                self._live[record.address] = record
            case Seen.FREED:
                if self._live.pop(record.address, None) is None and self._refusal is not None:
                    self._then.append(_Block(record.thing, record.device, record.size_bytes, "", None, 0))
            case Seen.REFUSED if self._refusal is None and record.object == _OUT_OF_MEMORY:
                self._refusal = record
                self._then = [
                    _Block(made.thing, made.device, made.size_bytes, made.function, made.number, made.stack)
                    for made in self._live.values()
                ]

    def told(self, ledger: Ledger, origins: Origins) -> OutOfMemory | None:
        """Return who held what; None where nothing was refused."""
        refusal = self._refusal
        if refusal is None:
            return None
        seen = {block.number for block in self._then}
        earlier = (
            _Block(each.thing, each.device, each.size_bytes, each.function, each.number, each.stack)
            for each in ledger.live()
            if each.thing.is_memory and each.number < refusal.number and each.number not in seen
        )
        blocks = [block for block in (*self._then, *earlier) if _shares(block, refusal)]
        live_bytes = sum(block.size_bytes for block in blocks)
        groups = _grouped(blocks, origins)
        site = origins.site_with_stack("refused to", refusal)
        return OutOfMemory(
            thing=things_in_words(refusal.thing, 1).partition(" of ")[2],
            device=refusal.device,
            requested_bytes=refusal.size_bytes,
            is_injected=bool(refusal.flags & Flag.INJECTED),
            is_first=not ledger.lost,
            capacity_bytes=refusal.address + refusal.other_bytes,
            live_bytes=live_bytes,
            live_count=len(blocks),
            cached_bytes=refusal.other,
            fragmented_bytes=max(0, refusal.other_bytes - refusal.other - live_bytes),
            free_bytes=refusal.address,
            site=site,
            holders=tuple(_holder(group, origins) for group in groups[:HOLDERS_MAX]),
            holders_count=len(groups),
        )


def _shares(block: _Block, refusal: Record) -> bool:
    """Whether a block takes from the memory that the request was for; managed memory is device 0's."""
    if refusal.thing not in (*_OF_DEVICES, Thing.PHYSICAL):
        return block.thing is refusal.thing
    device = 0 if block.thing is Thing.MANAGED else block.device
    return block.thing in _OF_DEVICES and device == (0 if refusal.thing is Thing.MANAGED else refusal.device)


def _grouped(blocks: list[_Block], origins: Origins) -> list[list[_Block]]:
    groups: dict[object, list[_Block]] = {}
    for block, place in zip(blocks, origins.places([block.stack for block in blocks]), strict=True):
        groups.setdefault((block.thing, block.function, place), []).append(block)
    return sorted(groups.values(), key=lambda group: -sum(block.size_bytes for block in group))


def _holder(group: list[_Block], origins: Origins) -> Holder:
    last = group[-1]
    function = last.function or "an unknown call"
    site = origins.site_of_call("allocated by", function, last.number or 0, last.stack)
    size_bytes = sum(block.size_bytes for block in group)
    return Holder(things_in_words(last.thing, 1).partition(" of ")[2], len(group), size_bytes, site)


def lines_of(told: OutOfMemory) -> Iterator[str]:
    """Yield what a terminal shows of it."""
    where = f" on device {told.device}" if told.thing != "pinned memory" else ""
    how = "the first refusal" if told.is_first else "the first refusal that is kept"
    yield (
        f"out of memory{where}: {told.site.call} of {bytes_in_words(told.requested_bytes)} of {told.thing} was refused "
        f"(call {told.site.number}, {how}){_at([told.site])[0]}"
    )
    if told.is_injected:
        yield "  --fail caused this refusal; memory at that moment:"
    yield (
        f"  of {bytes_in_words(told.capacity_bytes)}, {bytes_in_words(told.live_bytes)} were live in "
        f"{counted(told.live_count, 'block')}, {bytes_in_words(told.cached_bytes)} cached in the runtime's pools, "
        f"{bytes_in_words(told.fragmented_bytes)} fragmented and {bytes_in_words(told.free_bytes)} free"
    )
    yield from (f"  held: {line}" for line in _holder_lines(told.holders))
    if told.holders_count > len(told.holders):
        yield f"  and {counted(told.holders_count - len(told.holders), 'more place')} that hold less"


def _at(sites: Sequence[CallSite]) -> list[str]:
    return [f", {place}" if place else "" for place in made_at([site.frames for site in sites])]


def _holder_lines(holders: Sequence[Holder]) -> Iterator[str]:
    for holder, place in zip(holders, _at([holder.site for holder in holders]), strict=True):
        what = f"{counted(holder.count, 'block')} of {holder.thing} from {holder.site.call}"
        yield f"{bytes_in_words(holder.size_bytes)} in {what}{place}"
