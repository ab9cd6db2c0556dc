"""Excerpts for a finding: the operations around it, and the lines of source that it quotes.

All operations of a short sequence are shown, of a long one those around what was found. Lines of source come from the
report: no file is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.model.findings import Finding
from quiesce.model.results import Sample
from quiesce.model.wording import shown_path
from quiesce.reporting.page.scale import format_bytes
from quiesce.reporting.text import clean_line, quoted_lines

HEAD: Final = 3
"""Operations shown from the beginning."""
BEFORE: Final = 24
"""Operations shown before one that broke a rule."""
AFTER: Final = 8
"""Operations shown after one that broke a rule."""
TEXT_LENGTH_MAX: Final = 300
"""Characters of a request or an outcome that are shown."""
READINGS: Final[Mapping[str, Callable[[Sample], int | None]]] = {
    "live": lambda sample: sample.live_bytes,
    "reserved": lambda sample: sample.reserved_bytes,
    "pinned": lambda sample: sample.pinned_bytes,
}
"""The gauges of a sample, by name."""


@dataclass(frozen=True, slots=True)
class OperationLine:
    """One operation. ``gauges`` are the readings behind it, one for each column, '' where nobody read it."""

    index: int
    line: int | None
    request: str
    outcome: str
    gauges: tuple[str, ...]
    is_offending: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """``count`` operations that are not shown."""

    count: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Operations in order, with gaps. ``columns`` are the gauges of bytes that somebody read.

    ``at_closing`` says that something was found after the last operation.
    """

    columns: tuple[str, ...]
    lines: tuple[OperationLine | Gap, ...]
    at_closing: bool


def shorten(text: str) -> str:
    """Return one clean line of at most :data:`TEXT_LENGTH_MAX` characters."""
    line = clean_line(text)
    return line if len(line) <= TEXT_LENGTH_MAX else f"{line[:TEXT_LENGTH_MAX]}…"


def read_gauges(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return the gauges of which there is a reading, by name."""
    return tuple(name for name, read in READINGS.items() if any(read(sample) is not None for sample in samples))


def make_excerpt(timeline: Sequence[Sample], findings: Sequence[Finding], performed: int) -> Excerpt:
    """Return the excerpt. ``performed`` counts the operations that ran, also those that nobody sampled."""
    columns = read_gauges(timeline)
    offending = {finding.operation_index for finding in findings if finding.operation_index is not None}
    known = {
        sample.operation_index: _line_of(sample, columns, sample.operation_index in offending) for sample in timeline
    }
    for finding in findings:
        if finding.operation_index is not None and finding.operation_index not in known:
            known[finding.operation_index] = _unsampled(finding, finding.operation_index, columns)
    last = max([performed - 1, *known], default=-1)
    shown = _shown(sorted(offending) or [last], last)
    lines = _with_gaps((known[index] for index in shown if index in known), last)
    return Excerpt(columns, tuple(lines), at_closing=any(finding.operation_index is None for finding in findings))


def _line_of(sample: Sample, columns: Iterable[str], is_offending: bool) -> OperationLine:
    readings = [READINGS[column](sample) for column in columns]
    gauges = tuple("" if value is None else format_bytes(value) for value in readings)
    request, outcome = shorten(sample.request), shorten(sample.outcome)
    return OperationLine(sample.operation_index, sample.line, request, outcome, gauges, is_offending)


def _unsampled(finding: Finding, index: int, columns: Sequence[str]) -> OperationLine:
    return OperationLine(index, finding.line, shorten(finding.request), "", ("",) * len(columns), True)


def _shown(centres: Iterable[int], last: int) -> list[int]:
    indices = set(range(min(HEAD, last + 1)))
    for centre in centres:
        indices.update(range(max(0, centre - BEFORE), min(last, centre + AFTER) + 1))
    return sorted(indices)


def _with_gaps(lines: Iterable[OperationLine], last: int) -> Iterator[OperationLine | Gap]:
    following = 0
    for line in lines:
        if line.index > following:
            yield Gap(line.index - following)
        yield line
        following = line.index + 1
    if last >= following:
        yield Gap(last + 1 - following)


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
