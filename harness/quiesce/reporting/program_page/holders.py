"""Who held memory: what lived at the end, as a table and as a flame graph, and when a request first ran out of memory.

In the flame graph the outermost frame is on top, what it called below, as wide as the bytes. The geometry is in percent
of the width and in rows, so that the picture fits any page and its text keeps its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from quiesce.model.program_run import Holder, Holding, Holdings, OutOfMemory
from quiesce.model.wording import bytes_in_words, counted
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.page.scale import format_bytes
from quiesce.reporting.program_page.wording import Site, frame_line, make_site, short_place

FRAMES_MAX: Final = 48
"""Of a deeper stack, the innermost frames are shown."""
CELLS_MAX: Final = 600
PART_MIN: Final = 0.002
"""What is narrower can't be seen; the table has it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A frame with all that it called. ``state`` decides its colour; ``label`` is in the cell, ``title`` says all."""

    x_percent: float
    width_percent: float
    row: int
    state: str
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Flame:
    """The cells, each after the one that it hangs from, and how many rows they take."""

    cells: tuple[Cell, ...]
    rows: int
    left_out: int


@dataclass(slots=True)
class _Node:
    label: str
    full: str
    state: str
    size_bytes: int = 0
    count: int = 0
    below: dict[tuple[str, str], _Node] = field(default_factory=dict)


def make_flame(holdings: Holdings) -> Flame | None:
    """Return the flame graph of the memory that lived at the end, or None where no call stack was kept of any."""
    kept = [each for each in holdings.kept if each.size_bytes]
    if not any(each.site.frames for each in kept):
        return None
    root = _Node("all memory that was held", "", "")
    has_states = len({holding.state for holding in kept}) > 1
    root.state = "all" if has_states else kept[0].state
    for holding in kept:
        _add(root, holding, has_states=has_states)
    cells: list[Cell] = []
    left_out = 0
    for cell in _cells(root, root.size_bytes, 0.0, 0):
        if cell is None or len(cells) >= CELLS_MAX:
            left_out += 1
        else:
            cells.append(cell)
    return Flame(tuple(cells), 1 + max(cell.row for cell in cells), left_out)


def _add(root: _Node, holding: Holding, *, has_states: bool) -> None:
    frames = [frame_line(frame) for frame in reversed(holding.site.shown)]
    steps = [(f"{line.function} {line.where}".strip(), line.full) for line in frames[-FRAMES_MAX:]]
    thing = f"{shorten(holding.site.call)}: {shorten(holding.thing)}"
    state = [(shorten(holding.state), "")] if has_states else []
    node = root
    _count(node, holding)
    for label, full in [*state, *steps, (thing, f"on device {holding.device}")]:
        node = node.below.setdefault((label, full), _Node(label, full, holding.state))
        _count(node, holding)


def _count(node: _Node, holding: Holding) -> None:
    node.size_bytes += holding.size_bytes
    node.count += holding.count


def _cells(node: _Node, total: int, start: float, row: int) -> Iterator[Cell | None]:
    """Yield the cell of a node and of those below it, the widest first; None for what is too narrow."""
    part = node.size_bytes / total
    if part < PART_MIN:
        yield None
        return
    words = [node.label, node.full, f"{bytes_in_words(node.size_bytes)} in {counted(node.count, 'block')}"]
    yield Cell(
        x_percent=round(100 * start, 3),
        width_percent=round(100 * part, 3),
        row=row,
        state=shorten(node.state),
        label=f"{node.label}  {format_bytes(node.size_bytes)}",
        title="\n".join(filter(None, words)),
    )
    for below in sorted(node.below.values(), key=lambda each: (-each.size_bytes, each.label, each.full)):
        yield from _cells(below, total, start, row + 1)
        start += below.size_bytes / total


def states_of(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the states that have a colour in the graph, in order."""
    return tuple(dict.fromkeys(cell.state for cell in cells if cell.row))


HOLDERS_MAX: Final = 100
"""So many places are in the table; report.json has more."""


@dataclass(frozen=True, slots=True)
class HeldRow:
    """One place that made what lived at the end. ``share`` is its part of all bytes, in percent."""

    state: str
    what: str
    size: str
    share: float
    place: str
    site: Site


@dataclass(frozen=True, slots=True)
class HeldAtEnd:
    """The table, and the flame graph where call stacks were kept. ``states`` are those that the graph shows."""

    title: str
    sentence: str
    holders: tuple[HeldRow, ...]
    left_out: int
    flame: Flame | None
    states: tuple[str, ...]


def make_held(holdings: Holdings) -> HeldAtEnd | None:
    """Return what lived at the end, or None where nothing did."""
    if not holdings.count:
        return None
    flame = make_flame(holdings)
    rows = holdings.kept[:HOLDERS_MAX]
    return HeldAtEnd(
        title="Held at exit" if holdings.at_exit else "Held when it ended",
        sentence=_held_sentence(holdings),
        holders=tuple(_holder(each, holdings.size_bytes) for each in rows),
        left_out=holdings.count - sum(each.count for each in rows),
        flame=flame,
        states=states_of(flame.cells) if flame else (),
    )


def _held_sentence(holdings: Holdings) -> str:
    unjudged = (
        ""
        if holdings.at_exit
        else ". The process did not run its exit handlers, so pointers to them were not searched for"
    )
    return f"{bytes_in_words(holdings.size_bytes)} in {things_of(holdings.kept, holdings.count)}{unjudged}"


def things_of(kept: Iterable[Holding], count: int) -> str:
    """Return ``2 blocks and 1 handle``; what is not among ``kept`` is counted as well, as more things."""
    blocks = handles = 0
    for each in kept:
        if each.size_bytes:
            blocks += each.count
        else:
            handles += each.count
    more = count - blocks - handles
    parts = [(blocks, "block"), (handles, "handle"), (more, "more thing")]
    return " and ".join(counted(number, thing) for number, thing in parts if number)


def _holder(holding: Holding, total: int) -> HeldRow:
    number = f"{holding.count:,} \N{MULTIPLICATION SIGN} " if holding.count > 1 else ""
    return HeldRow(
        state=shorten(holding.state),
        what=f"{number}{shorten(holding.thing)}",
        size=bytes_in_words(holding.size_bytes) if holding.size_bytes else "",
        share=round(100 * holding.size_bytes / total, 1) if total else 0.0,
        place=short_place(holding.site),
        site=make_site(holding.site),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the capacity. ``kind`` decides its colour."""

    kind: str
    name: str
    size: str
    percent: float


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A place that held some of it; ``share`` is its part of the capacity, in percent."""

    what: str
    size: str
    share: float
    place: str
    site: Site


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """What was refused, what there was, and who held it."""

    sentence: str
    asked_by: Site
    parts: tuple[Part, ...]
    holders: tuple[HolderRow, ...]
    left_out: int


def make_exhaustion(refused: OutOfMemory) -> Exhaustion:
    """Return the words for a refusal."""
    total = max(1, refused.capacity_bytes)
    parts = (
        ("live", f"live in {counted(refused.live_count, 'block')}", refused.live_bytes),
        ("cached", "cached in pools of the runtime", refused.cached_bytes),
        ("fragmented", "taken by rounding", refused.fragmented_bytes),
        ("free", "free", refused.free_bytes),
    )
    return Exhaustion(
        sentence=_refused_sentence(refused),
        asked_by=make_site(refused.site),
        parts=tuple(Part(kind, name, bytes_in_words(size), _percent(size, total)) for kind, name, size in parts),
        holders=tuple(_row(holder, total) for holder in refused.holders),
        left_out=refused.holders_count - len(refused.holders),
    )


def _refused_sentence(refused: OutOfMemory) -> str:
    asked = (
        f"{shorten(refused.site.call)} asked for {bytes_in_words(refused.requested_bytes)} of {shorten(refused.thing)}"
    )
    where = f"{asked} on device {refused.device}, at call {refused.site.number:,}"
    if refused.is_injected:
        return f"{where}. --fail caused this refusal. The capacity is {bytes_in_words(refused.capacity_bytes)}."
    first = "the first refusal" if refused.is_first else "the first refusal that was kept"
    return f"{where}, and was refused ({first}). The capacity is {bytes_in_words(refused.capacity_bytes)}."


def _percent(size_bytes: int, total: int) -> float:
    return round(min(100.0, max(0.0, 100 * size_bytes / total)), 2)


def _row(holder: Holder, total: int) -> HolderRow:
    return HolderRow(
        what=f"{counted(holder.count, 'block')} of {shorten(holder.thing)}",
        size=bytes_in_words(holder.size_bytes),
        share=_percent(holder.size_bytes, total),
        place=short_place(holder.site),
        site=make_site(holder.site),
    )
