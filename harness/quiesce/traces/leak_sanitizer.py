"""LeakSanitizer's text, alone (``-fsanitize=leak``) or with AddressSanitizer, anywhere in a program's output.

A report begins with ``==PID==ERROR: LeakSanitizer: detected memory leaks`` and ends with a ``SUMMARY:`` line, whose
sums must not be below those of the leaks above it: the format of compiler-rt's ``lsan_common.cpp``. The runtime prints
nothing where nothing leaked. An error of AddressSanitizer's, after which it does not look for leaks, is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from quiesce.amounts import bytes_in_words
from quiesce.traces.address_sanitizer import ERROR, ErrorSection
from quiesce.traces.log_lines import log_lines
from quiesce.traces.native_leaks import (
    FRAMES_MAX,
    RECORDS_MAX,
    Format,
    Frame,
    NativeLeak,
    Note,
    Reach,
    Record,
    UnreadableReport,
)
from quiesce.traces.sanitizer_frames import frame_in

TOOL: Final = "leak-sanitizer"
_BEGIN: Final = "ERROR: LeakSanitizer: detected memory leaks"
_FATAL: Final = "LeakSanitizer has encountered a fatal error"

_LEAK: Final = re.compile(r"(Direct|Indirect) leak of (\d{1,20}) byte\(s\) in (\d{1,20}) object\(s\) allocated from:")
_SUMMARY: Final = re.compile(
    r"SUMMARY: (?:Leak|Address|HWAddress|Memory)Sanitizer: (\d{1,20}) byte\(s\) leaked in (\d{1,20}) allocation\(s\)"
)


class _Section:
    """One report: the leak that is being read, and what was read so far."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._leak: NativeLeak | None = None
        self._frames: list[Frame] = []
        self.begun: int | None = None
        """The line that the report began in, or None between two reports."""
        self.hidden_bytes = 0
        """What the sums count and no leak shows (``max_leaks=…``)."""
        self._size_bytes = self._blocks = self._leaks = 0

    def begin(self, number: int) -> None:
        if self.begun is not None:
            raise self.unfinished()
        self.begun, self._size_bytes, self._blocks = number, 0, 0

    def unfinished(self) -> UnreadableReport:
        return UnreadableReport(
            self._path, self.begun, "the report that begins here has no SUMMARY line", "keep the program's whole output"
        )

    def leak(self, number: int, match: re.Match[str]) -> Iterator[Record]:
        yield from self.flush()
        self._leaks += 1
        if self._leaks > RECORDS_MAX:
            raise UnreadableReport(
                self._path, number, f"there are more than {RECORDS_MAX} leaks", "run the program on a smaller input"
            )
        size_bytes, blocks = int(match[2]), int(match[3])
        self._size_bytes += size_bytes
        self._blocks += blocks
        self._leak = NativeLeak(Reach.LOST, size_bytes, blocks, number, match[0].removesuffix(" allocated from:"))

    def frame(self, frame: Frame) -> None:
        if self._leak is not None and len(self._frames) < FRAMES_MAX:
            self._frames.append(frame)

    def flush(self) -> Iterator[Record]:
        if self._leak is not None:
            yield replace(self._leak, stack=tuple(self._frames))
        self._leak, self._frames = None, []

    def end(self, number: int, match: re.Match[str]) -> Iterator[Record]:
        yield from self.flush()
        size_bytes, blocks = int(match[1]), int(match[2])
        if size_bytes < self._size_bytes or blocks < self._blocks:
            raise UnreadableReport(
                self._path,
                number,
                f"the sum is {size_bytes} bytes in {blocks} blocks, the leaks above have {self._size_bytes} in "
                f"{self._blocks}",
                "keep the output of each process apart (log_path=…)",
            )
        self.hidden_bytes += size_bytes - self._size_bytes
        self.begun = None


def records(path: str) -> Iterator[Record]:
    """Yield what a log says, as it is read. Raises as :class:`quiesce.traces.native_leaks.Format` says."""
    section = _Section(path)
    error: ErrorSection | None = None
    for number, line in log_lines(path):
        if _FATAL in line:
            raise UnreadableReport(path, number, "LeakSanitizer could not check", "run the program without a debugger")
        if error is not None:
            misuse = error.see(line)
            if misuse is not None:
                yield misuse
                error = None
        elif ERROR in line:
            error = ErrorSection(path, number, line)
        elif _BEGIN in line:
            section.begin(number)
        elif section.begun is not None:
            yield from _read(section, number, line)
    if error is not None:
        raise error.unfinished()
    if section.begun is not None:
        raise section.unfinished()
    if section.hidden_bytes:
        yield Note(f"{bytes_in_words(section.hidden_bytes)} more leaked; the report shows no stack of them")


def _read(section: _Section, number: int, line: str) -> Iterator[Record]:
    if match := _LEAK.search(line):
        yield from section.leak(number, match)
    elif match := _SUMMARY.search(line):
        yield from section.end(number, match)
    elif frame := frame_in(line):
        section.frame(frame)
    elif not line.strip():
        yield from section.flush()


FORMAT: Final = Format(TOOL, records, (_BEGIN, _FATAL, ERROR))
