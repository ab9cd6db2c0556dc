"""AddressSanitizer's errors, which end most programs before anybody looks for leaks."""

from __future__ import annotations

import re
from typing import Final

from quiesce.kinds import Kind
from quiesce.program_rules import FREED_ONCE, INSIDE, NOT_USED_FREED, OWN_FREED
from quiesce.traces.native_leaks import FRAMES_MAX, Frame, NativeMisuse, UnreadableReport
from quiesce.traces.sanitizer_frames import frame_in

ERROR: Final = "ERROR: AddressSanitizer: "
_SUMMARY: Final = "SUMMARY: AddressSanitizer: "
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
        if _SUMMARY in line:
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
