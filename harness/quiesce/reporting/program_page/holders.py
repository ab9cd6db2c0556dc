"""What lived at the end, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quiesce.amounts import bytes_in_words, counted
from quiesce.program_run import Holding, Holdings
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.program_page.flame import Flame, make_flame, states_of
from quiesce.reporting.program_page.places import Site, make_site, short_place

ROWS_MAX: Final = 100
"""So many places are in the table; report.json has more."""


@dataclass(frozen=True, slots=True)
class Holder:
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
    holders: tuple[Holder, ...]
    left_out: int
    flame: Flame | None
    states: tuple[str, ...]


def make_held(holdings: Holdings) -> HeldAtEnd | None:
    """Return what lived at the end, or None where nothing did."""
    if not holdings.count:
        return None
    flame = make_flame(holdings)
    rows = holdings.kept[:ROWS_MAX]
    return HeldAtEnd(
        title="Held at exit" if holdings.at_exit else "Held when it ended",
        sentence=_sentence(holdings),
        holders=tuple(_holder(each, holdings.size_bytes) for each in rows),
        left_out=holdings.count - sum(each.count for each in rows),
        flame=flame,
        states=states_of(flame.cells) if flame else (),
    )


def _sentence(holdings: Holdings) -> str:
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


def _holder(holding: Holding, total: int) -> Holder:
    number = f"{holding.count:,} \N{MULTIPLICATION SIGN} " if holding.count > 1 else ""
    return Holder(
        state=shorten(holding.state),
        what=f"{number}{shorten(holding.thing)}",
        size=bytes_in_words(holding.size_bytes) if holding.size_bytes else "",
        share=round(100 * holding.size_bytes / total, 1) if total else 0.0,
        place=short_place(holding.site),
        site=make_site(holding.site),
    )
