"""What lived at the end as a flame graph: the outermost frame on top, what it called below, as wide as the bytes.

The geometry is in percent of the width and in rows, so that the picture fits any page and its text keeps its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from quiesce.amounts import bytes_in_words, counted
from quiesce.program_run import Holding, Holdings
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.page.sizes import format_bytes
from quiesce.reporting.program_page.places import frame_line

ROWS_MAX: Final = 48
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
    steps = [(f"{line.function} {line.where}".strip(), line.full) for line in frames[-ROWS_MAX:]]
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
