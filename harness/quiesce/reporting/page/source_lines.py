"""The lines of source that a finding quotes, as pages show them; they come from the report, and no file is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quiesce.findings import Finding
from quiesce.reporting.text import clean_line, quoted_lines
from quiesce.shown_paths import shown_path

QUOTATIONS_MAX: Final = 4
LINES_MAX: Final = 20
LINE_LENGTH_MAX: Final = 160
"""So much of what a report says is shown: anybody may have written it."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line. ``is_it`` says that the finding names it."""

    number: int
    text: str
    is_it: bool


@dataclass(frozen=True, slots=True)
class QuotedSource:
    """Lines of one file. ``place`` is the file and the line that is meant."""

    place: str
    lines: tuple[SourceLine, ...]


def quoted_sources(finding: Finding) -> tuple[QuotedSource, ...]:
    """Return what a finding quotes."""
    return tuple(
        QuotedSource(
            clean_line(f"{shown_path(each.file)}:{each.line}"),
            tuple(
                SourceLine(number, _shortened(text), is_it) for number, text, is_it in quoted_lines(each)[:LINES_MAX]
            ),
        )
        for each in finding.quoted[:QUOTATIONS_MAX]
    )


def _shortened(line: str) -> str:
    return line if len(line) <= LINE_LENGTH_MAX + 1 else f"{line[:LINE_LENGTH_MAX]}…"
