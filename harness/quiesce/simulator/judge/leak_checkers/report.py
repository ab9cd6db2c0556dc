"""What the leak checkers of native code report, in one form: values that every importer makes and one judge reads.

Their reports stand in logs that may hold anything: lines of any encoding, of any length, without an end.
"""

from __future__ import annotations

import codecs
import enum
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.model.errors import QuiesceError
from quiesce.model.rules import Kind

FRAMES_MAX: Final = 32
"""How many frames of a stack are kept, the innermost first."""
RECORDS_MAX: Final = 1_000_000
"""A report of more records than this is refused: reading it would say no more, and never end."""


class Reach(enum.Enum):
    """What a checker knows of the pointers to a block when the program exits."""

    LOST = "no pointer left"
    DOUBTFUL = "only a pointer into the middle left"
    REACHABLE = "still reachable"
    UNKNOWN = "not freed"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a stack. ``function`` is '' where there are no symbols; ``place`` is a file and line or a module."""

    function: str
    place: str

    def __str__(self) -> str:
        if self.function and self.place:
            return f"{self.function} ({self.place})"
        return self.function or self.place


@dataclass(frozen=True, slots=True)
class NativeLeak:
    """Blocks of one origin that were live at the exit. ``line`` is where the report says so, ``text`` its own words."""

    reach: Reach
    size_bytes: int
    blocks: int
    line: int
    text: str
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeMisuse:
    """Memory that was used or freed as it may not be; ``rule`` is the rule that says so."""

    rule: str
    kind: Kind
    expected: str
    line: int
    text: str
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """What a report says that is no finding."""

    text: str


Record = NativeLeak | NativeMisuse | Note


class UnreadableReport(QuiesceError):
    """A report cannot be read. The text is ``file:line: what is wrong; what to do instead``."""

    def __init__(self, path: str, line: int | None, what: str, instead: str) -> None:
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {what}; {instead}")


@dataclass(frozen=True, slots=True)
class Format:
    """One format of reports. ``tool`` names the checker, as results and ``--format`` do."""

    tool: str
    records: Callable[[str], Iterator[Record]]
    """What the file of a path reports. Raises :class:`UnreadableReport` and :class:`OSError`."""
    marks: tuple[str, ...]
    """What only reports of this format hold: the beginning of the file, or a part of one of its lines."""


LINE_CHARACTERS_MAX: Final = 1 << 14
"""What is longer comes in pieces: no line of a leak report is."""

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
"""Byte order marks. PowerShell 5 writes UTF-16 where output is redirected."""


def log_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line, without its end; what can't be decoded is replaced.

    Raises :class:`OSError`.
    """
    with Path(path).open("rb") as raw:
        head = raw.read(4)
        raw.seek(0)
        encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
        stream = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline=None)
        number = 1
        while piece := stream.readline(LINE_CHARACTERS_MAX):
            yield number, piece.rstrip("\n")
            number += piece.endswith("\n")
