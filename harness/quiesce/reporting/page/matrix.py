"""The matrix: a row for each case, a column for each backend, the verdict where they meet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.model.results import Result, Verdict
from quiesce.reporting.result_lists import attempt_note, shorten_middle, split_case
from quiesce.reporting.text import clean_line

SEVERITY: Final[Mapping[Verdict, int]] = {
    verdict: rank
    for rank, verdict in enumerate(
        (
            Verdict.FAILED,
            Verdict.BROKEN_CASE,
            Verdict.KNOWN_UPSTREAM,
            Verdict.INCONCLUSIVE,
            Verdict.NOT_PROMISED,
            Verdict.UNSUPPORTED,
            Verdict.PASSED,
        )
    )
}
"""The order of verdicts, worst first: what a cell with several results shows, and how columns are sorted."""


HEADING_LENGTH_MAX: Final = 40
"""Characters of a backend's name that stand above its column; the table of counts has all of them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A case on a backend: the worst of ``count`` results.

    ``note`` is what there is to say beyond the verdict, and ``card`` the anchor of its details; either may be ''.
    """

    verdict: Verdict
    count: int
    note: str
    card: str


@dataclass(frozen=True, slots=True)
class Row:
    """One case; ``cells`` stand in the order of the matrix's backends, None where it did not run."""

    topic: str
    name: str
    title: str
    upstream: tuple[str, ...]
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """The whole table. ``headings`` are the names of the backends, short enough for a column."""

    backends: tuple[str, ...]
    headings: tuple[str, ...]
    topics: tuple[str, ...]
    rows: tuple[Row, ...]


def make_matrix(results: Sequence[Result], cards: Mapping[int, str]) -> Matrix:
    """Return the matrix of ``results``; ``cards`` maps positions in ``results`` to the anchor of their details."""
    backends = sorted({result.backend for result in results})
    by_case: defaultdict[tuple[str, str], defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for position, result in enumerate(results):
        by_case[result.case, result.path][result.backend].append(position)
    rows = []
    for (case, _), by_backend in sorted(by_case.items()):
        first = results[next(iter(by_backend.values()))[0]]
        cells = tuple(_cell(results, by_backend.get(backend, ()), cards) for backend in backends)
        upstream = tuple(map(clean_line, first.upstream))
        topic, name = map(clean_line, split_case(case))
        rows.append(Row(topic, name, clean_line(first.title), upstream, cells))
    topics = tuple(sorted({row.topic for row in rows}))
    names = tuple(map(clean_line, backends))
    return Matrix(names, tuple(shorten_middle(name, HEADING_LENGTH_MAX) for name in names), topics, tuple(rows))


def _cell(results: Sequence[Result], positions: Iterable[int], cards: Mapping[int, str]) -> Cell | None:
    ranked = sorted(positions, key=lambda position: SEVERITY[results[position].verdict])
    if not ranked:
        return None
    worst = results[ranked[0]]
    card = next((cards[position] for position in ranked if position in cards), "")
    return Cell(worst.verdict, len(ranked), _note(worst, len(ranked)), card)


def _note(result: Result, count: int) -> str:
    why = clean_line(result.reason) or ", ".join(dict.fromkeys(clean_line(each.rule) for each in result.findings))
    why = "; ".join(filter(None, (why, attempt_note(result))))
    several = f" (the worst of {count} results)" if count > 1 else ""
    return f"{result.verdict}{several}" + (f": {why}" if why else "") if several or why else ""
