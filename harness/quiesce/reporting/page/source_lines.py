"""The lines of source around the place that a finding names, if the file is still the one that was run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.findings import Finding
from quiesce.reporting.text import clean_line

AROUND: Final = 1
"""How many lines are shown before the place, and after it."""
FILE_BYTES_MAX: Final = 1 << 20
LINE_LENGTH_MAX: Final = 160


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line. ``is_it`` says that the finding names it."""

    number: int
    text: str
    is_it: bool


def source_lines(finding: Finding) -> tuple[SourceLine, ...]:
    """Return the lines, or nothing where the file can't be read or its line is another one than was recorded."""
    path, _, number = finding.allocated.rpartition(":")
    recorded = finding.allocated_by.partition(f"{finding.allocated}: ")[2].partition("\n")[0].strip()
    if not path or not recorded or not number.isdecimal():
        return ()
    line = int(number)
    try:
        if Path(path).stat().st_size > FILE_BYTES_MAX:
            return ()
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ()
    if not 1 <= line <= len(lines) or lines[line - 1].strip() != recorded:
        return ()
    shown = range(max(1, line - AROUND), min(len(lines), line + AROUND) + 1)
    indent = min(len(lines[each - 1]) - len(lines[each - 1].lstrip()) for each in shown if lines[each - 1].strip())
    return tuple(
        SourceLine(each, _shortened(lines[each - 1][indent:].expandtabs(4).rstrip()), each == line) for each in shown
    )


def _shortened(text: str) -> str:
    lead = len(text) - len(text.lstrip())
    line = " " * lead + clean_line(text)
    return line if len(line) <= LINE_LENGTH_MAX else f"{line[:LINE_LENGTH_MAX]}…"
