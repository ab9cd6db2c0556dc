"""The calls of a process that failed, for a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quiesce.program_run import FailedCall, FailedCalls
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.program_page.places import Site, make_site, short_place

_ROWS_MAX: Final = 30


@dataclass(frozen=True, slots=True)
class FailedRow:
    """One function that failed with one error at one place. ``about`` is what else there is to say, or empty."""

    call: str
    error: str
    times: str
    about: str
    place: str
    site: Site


@dataclass(frozen=True, slots=True)
class FailedTable:
    """The rows, and how many found no room."""

    rows: tuple[FailedRow, ...]
    left_out: int


def make_failed(calls: FailedCalls) -> FailedTable | None:
    """Return the table; None where no call failed."""
    rows = tuple(_rows(calls.kept[:_ROWS_MAX]))
    return FailedTable(rows, calls.count - len(rows)) if rows else None


def _rows(calls: tuple[FailedCall, ...]) -> Iterator[FailedRow]:
    for each in calls:
        yield FailedRow(
            call=shorten(each.site.call),
            error=shorten(f"{each.code} {each.error}".rstrip()),
            times=f"{each.count:,}",
            about=shorten(each.remark),
            place=short_place(each.site),
            site=make_site(each.site),
        )
