"""Growth between marks: a program that marks each of its iterations may hold no more at the end of the next.

What is live at a moment is kept up to date from record to record, by what it is and who made it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

from quiesce.allocators.oracle import GROWTH, grows_as_expected
from quiesce.model.findings import Finding, Grade
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words, counted
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.wording import things_in_words
from quiesce.simulator.runtime import OF_LIBRARIES, Record, Seen, Thing


@dataclass(frozen=True, slots=True)
class Maker:
    """Things of one kind that one call makes. ``size_bytes`` tells them apart where no call stacks are kept."""

    thing: Thing
    device: int
    function: str
    stack: int
    size_bytes: int


@dataclass(slots=True)
class Held:
    """How much of a maker's is live; ``latest`` is the record that made the last of it."""

    count: int
    size_bytes: int
    latest: Record


class LiveSet:
    """Takes records in order."""

    def __init__(self) -> None:
        self.held: dict[Maker, Held] = {}
        self._made: dict[tuple[bool, int], tuple[Maker, int]] = {}

    def see(self, record: Record) -> Maker | None:
        """Enter one record, and return whose holdings it changed."""
        match record.seen:
            case Seen.ALLOCATED | Seen.CREATED:
                return self._make(record)
            case Seen.FREED | Seen.DESTROYED:
                return self._end(record)
            case _:
                return None

    def _make(self, record: Record) -> Maker:
        size_bytes = record.size_bytes if record.thing.is_memory else 0
        maker = Maker(
            record.thing, record.device, record.function, record.stack, 0 if record.stack else record.size_bytes
        )
        held = self.held.setdefault(maker, Held(0, 0, record))
        held.count += 1
        held.size_bytes += size_bytes
        held.latest = record
        self._made[_name(record)] = maker, size_bytes
        return maker

    def _end(self, record: Record) -> Maker | None:
        known = self._made.pop(_name(record), None)
        if known is None:
            return None
        maker, size_bytes = known
        held = self.held[maker]
        held.count -= 1
        held.size_bytes -= size_bytes
        return maker


def _name(record: Record) -> tuple[bool, int]:
    """Return what the end of a thing has in common with its beginning: a block's address, a handle's serial."""
    is_block = record.seen in (Seen.ALLOCATED, Seen.FREED)
    return is_block, record.address if is_block else record.object


WARM_UP: Final = 2
"""How many of the first marks are not judged: contexts, workspaces and caches are made then."""
MARKS_MIN: Final = 6
"""With fewer marks of one name nothing is judged."""
_NAMED_MAX: Final = 3
"""Of more names with too few marks, only the number is told."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one place in the code had made at each mark and was live."""

    maker: Maker
    latest: Record
    counts: list[int]
    sizes_bytes: list[int]


_Key: TypeAlias = tuple[Thing, int, str, int, tuple[tuple[str, str], ...]]
"""What the things of a part have in common: kind, device, function, size where no place is known, and place."""


class _Series:
    """What is known of the marks of one name."""

    def __init__(self) -> None:
        self.marks: list[Record] = []
        self.changed: set[Maker] = set()
        self.steps: dict[Maker, list[tuple[int, int, int]]] = defaultdict(list)
        """By maker, the marks before which it changed, and how much of it was live from then on."""


class Marks:
    """What was live at each mark, by the mark's name, and who had made it."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._series: dict[str, _Series] = defaultdict(_Series)

    def change(self, maker: Maker) -> None:
        """Note that more or less of a maker's is live than before."""
        for series in self._series.values():
            series.changed.add(maker)

    def see(self, record: Record, live: LiveSet | None) -> None:
        """Enter one mark, and what is live then where it is known."""
        known = record.function in self._series
        series = self._series[record.function]
        if live is not None:
            for maker in series.changed if known else live.held:
                held = live.held[maker]
                series.steps[maker].append((len(series.marks), held.count, held.size_bytes))
        series.changed.clear()
        series.marks.append(record)

    def findings(self, live: LiveSet | None) -> Iterator[Finding]:
        """Yield what grew from mark to mark."""
        for name, series in self._series.items():
            if len(series.marks) >= MARKS_MIN and _grows(series.marks):
                parts = list(self._growing(series, live)) if live is not None else []
                places = self._origins.made_at([part.maker.stack for part in parts])
                yield from (self._finding(name, part, place) for part, place in zip(parts, places, strict=True))
                if not parts:
                    yield _unplaced(name, series.marks)

    def notes(self) -> Iterator[str]:
        """Yield which marks were too few to judge."""
        few = {name: len(series.marks) for name, series in self._series.items() if len(series.marks) < MARKS_MIN}
        if len(few) > _NAMED_MAX:
            yield (
                f"{counted(len(few), 'name')} of marks with fewer than {MARKS_MIN} each: their growth was not judged; "
                "give all marks of one loop the same name"
            )
            return
        for name, count in few.items():
            yield f"{counted(count, 'mark')} '{name}': {MARKS_MIN} are needed to judge growth"

    def _growing(self, series: _Series, live: LiveSet) -> Iterator[_Part]:
        makers = list(series.steps)
        places = self._origins.places([maker.stack for maker in makers])
        joined: dict[_Key, _Part] = {}
        for maker, place in zip(makers, places, strict=True):
            key = (maker.thing, maker.device, maker.function, maker.size_bytes, place)
            latest = live.held[maker].latest
            part = joined.get(key) or _Part(maker, latest, [0] * len(series.marks), [0] * len(series.marks))
            joined[key] = part if latest.number <= part.latest.number else replace(part, latest=latest)
            _add(part, series.steps[maker])
        growing = {key: part for key, part in joined.items() if not all(map(_is_flat, (part.counts, part.sizes_bytes)))}
        with_workspace = {
            (device, function, place) for thing, device, function, _, place in growing if thing in OF_LIBRARIES
        }
        for (thing, device, function, _, place), part in growing.items():
            if not (thing.is_memory and (device, function, place) in with_workspace):
                yield part

    def _finding(self, name: str, part: _Part, place: str) -> Finding:
        maker = part.maker
        is_memory = maker.thing.is_memory
        where = f", {'allocated' if is_memory else 'created'} {place}" if place else ""
        hint = "" if maker.stack else "; run it without --no-stacks to see where"
        return Finding(
            GROWTH,
            f"no more at each mark '{name}' than at the one before",
            f"{_growth(name, part)} from {maker.function} on device {maker.device}{where}{hint}",
            kind=Kind.MEMORY_LEAK if is_memory else Kind.HANDLE_LEAK,
            grade=Grade.GROWTH,
            call_sites=(self._origins.site("allocated by" if is_memory else "created by", part.latest),),
        )


def _add(part: _Part, steps: Sequence[tuple[int, int, int]]) -> None:
    ends = [mark for mark, _, _ in steps[1:]] + [len(part.counts)]
    for (begin, count, size_bytes), end in zip(steps, ends, strict=True):
        for mark in range(begin, end):
            part.counts[mark] += count
            part.sizes_bytes[mark] += size_bytes


def _grows(marks: Sequence[Record]) -> bool:
    judged = (
        [record.address for record in marks],
        [record.size_bytes for record in marks],
        [record.other for record in marks],
    )
    return not all(map(_is_flat, judged))


def _is_flat(values: Sequence[int]) -> bool:
    return grows_as_expected(values[WARM_UP:], 0, cumulative=False)


def _growth(name: str, part: _Part) -> str:
    """Return how much more there is: at each mark where that is always as much, else over all that are judged."""
    steps = {(b - a, d - c) for (a, b), (c, d) in zip(pairwise(part.counts), pairwise(part.sizes_bytes), strict=True)}
    if len(steps) == 1:
        ((count, size_bytes),) = steps
        return f"{_amount(part, count, size_bytes)} more at each of {counted(len(part.counts), 'mark')} '{name}'"
    count, size_bytes = part.counts[-1] - part.counts[WARM_UP], part.sizes_bytes[-1] - part.sizes_bytes[WARM_UP]
    more, judged = f"{_amount(part, count, size_bytes)} more", len(part.counts) - WARM_UP
    return f"{more} at the last of {counted(judged, 'mark')} '{name}' than at the first"


def _amount(part: _Part, count: int, size_bytes: int) -> str:
    what = things_in_words(part.maker.thing, count)
    return f"{bytes_in_words(size_bytes)} in {what}" if size_bytes else what


def _unplaced(name: str, marks: Sequence[Record]) -> Finding:
    """Return that more is live, where no place's own part of it grows or what was before was overwritten."""
    first, last = marks[WARM_UP], marks[-1]
    now = (
        f"{bytes_in_words(last.size_bytes)} in {counted(last.address, 'block')} and {counted(last.other, 'handle')} "
        f"at the last of {counted(len(marks), 'mark')} '{name}'; at the third, {bytes_in_words(first.size_bytes)} in "
        f"{counted(first.address, 'block')} and {counted(first.other, 'handle')}"
    )
    expected = f"no more at each mark '{name}' than at the one before"
    return Finding(GROWTH, expected, now, kind=Kind.MEMORY_LEAK, grade=Grade.GROWTH)
