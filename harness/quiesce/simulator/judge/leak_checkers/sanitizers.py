"""LeakSanitizer's text, alone (``-fsanitize=leak``) or with AddressSanitizer, anywhere in a program's output.

AddressSanitizer's own errors are read as well: they end most programs before anybody looks for leaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from quiesce.model.program_rules import FREED_ONCE, INSIDE, NOT_USED_FREED, OWN_FREED
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words
from quiesce.simulator.judge.leak_checkers.report import (
    FRAMES_MAX,
    RECORDS_MAX,
    Format,
    Frame,
    NativeLeak,
    NativeMisuse,
    Note,
    Reach,
    Record,
    UnreadableReport,
    log_lines,
)

_FRAME: Final = re.compile(r"\s*#\d+ 0x[0-9a-f]+ +(?:in )?(.*)")
_MODULE: Final = re.compile(r"\(([^()]*\+0x[0-9a-f]+)\)(?: \(BuildId: [0-9a-f]+\))?$")


def frame_in(line: str) -> Frame | None:
    """Return the frame of a line, or None where there is none.

    What follows the address is ``make /src/leaky.c:4``, ``make (/lib/liblsan.so.0+0x1)`` or the latter without a name.
    """
    match = _FRAME.match(line)
    if match is None:
        return None
    text = match[1].strip()
    if module := _MODULE.search(text):
        return Frame(text[: module.start()].strip(), PurePath(module[1]).name)
    function, space, place = text.rpartition(" ")
    return Frame(function, PurePath(place).name) if space else Frame(text, "")


ERROR: Final = "ERROR: AddressSanitizer: "
_ERROR_SUMMARY: Final = "SUMMARY: AddressSanitizer: "
_ADDRESSES: Final = re.compile(r" (?:on address|at pc|on unknown address) ?.*")

_RULES: Final = {
    "heap-use-after-free": (NOT_USED_FREED, Kind.USE_AFTER_FREE, "live memory"),
    "heap-buffer-overflow": (INSIDE, Kind.OUT_OF_BOUNDS, "a use inside of a live block"),
    "attempting double-free": (FREED_ONCE, Kind.DOUBLE_FREE, "one free of each block"),
    "attempting free on address which was not malloc()-ed": (
        OWN_FREED,
        Kind.INVALID_FREE,
        "an address that was allocated",
    ),
    "alloc-dealloc-mismatch": (OWN_FREED, Kind.INVALID_FREE, "the free that belongs to the allocation"),
}
"""The errors about blocks of the heap, by their beginnings, and the rules that they break."""


class ErrorSection:
    """One error, from its first line to its ``SUMMARY:``; the first of its stacks is the use."""

    def __init__(self, path: str, number: int, line: str) -> None:
        self._path = path
        self._number = number
        self._text = line.partition(ERROR)[2].strip()
        self._frames: list[Frame] = []
        self._first_stack = True

    def see(self, line: str) -> NativeMisuse | None:
        """Enter a line, and return the error where the line ends it.

        Raises :class:`UnreadableReport` for an error that is not about a block of the heap.
        """
        if _ERROR_SUMMARY in line:
            return self._misuse()
        frame = frame_in(line)
        if frame is not None and self._first_stack and len(self._frames) < FRAMES_MAX:
            self._frames.append(frame)
        elif frame is None and self._frames:
            self._first_stack = False
        return None

    def unfinished(self) -> UnreadableReport:
        """Return the error of a log that ends within it."""
        what = "the error that begins here has no SUMMARY line"
        return UnreadableReport(self._path, self._number, what, "keep the program's whole output")

    def _misuse(self) -> NativeMisuse:
        rule = next((rule for kind, rule in _RULES.items() if self._text.startswith(kind)), None)
        if rule is None:
            what = f"the program ended with AddressSanitizer's '{_ADDRESSES.sub('', self._text)[:80]}'"
            raise UnreadableReport(self._path, self._number, what, "fix that first: leaks were not checked")
        return NativeMisuse(*rule, self._number, self._text, tuple(self._frames))


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
    """Yield what a log says, as it is read. Raises as :class:`Format` says."""
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
