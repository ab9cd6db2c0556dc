"""Which line changes a count: what is counted is read after each line of a few rounds.

It sees what leaves no trace: an entry that goes into the room that a list has, a descriptor, a thread, native memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from quiesce.leaks.owners import DEPENDENCY, TESTED, Frame, Owners
from quiesce.leaks.tracing import FRAMES

ROUNDS: Final = 4
"""So many rounds show a line that changes something in some of them only."""

LINES_MAX: Final = 500_000
"""After so many lines nothing is read any more: each takes microseconds."""


@dataclass(frozen=True, slots=True)
class ChangedBy:
    """A line of tested code and what it changed in all rounds.

    ``function`` has the first and last line around it, and ``callers`` the lines of tested code that led there.
    """

    frame: Frame
    change: int
    function: tuple[int, int]
    callers: frozenset[Frame] = frozenset()


class LineWatch:
    """Reads ``now`` after each line. A tracer that is there, as that of coverage, comes back."""

    def __init__(self, owners: Owners, now: Callable[[], Sequence[int]]) -> None:
        self._owners = owners
        self._now = now
        self._begun = self._last = now()
        self._frame: FrameType | None = None
        self._line = 0
        self._lines = 0
        self._callers: dict[Frame, frozenset[Frame]] = {}
        self._changes: list[dict[tuple[Frame, tuple[int, int]], int]] = [{} for _ in self._last]

    def watch(self, run_round: Callable[[], None]) -> Sequence[ChangedBy]:
        """Run rounds and return the lines of tested code after which a count was higher that is higher at the end."""
        for _ in range(ROUNDS):
            before = sys.gettrace()
            sys.settrace(self._enter)
            try:
                run_round()
            finally:
                sys.settrace(before)
                self._frame = None
        return self._changed()

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        """Follow the lines of tested code; what it calls changes what the line changes that calls it."""
        if not self._is_followed(frame):
            return None
        return self._step(frame, "call", None)

    def _is_followed(self, frame: FrameType) -> bool:
        kind = self._owners.kind(frame.f_code.co_filename)
        if kind != DEPENDENCY:
            return kind == TESTED
        caller = frame.f_back  # an installed package is tested code where no other code calls it: tests come with some
        for _ in range(FRAMES):
            if caller is None:
                break
            if self._owners.is_tested(caller.f_code.co_filename):
                return False
            caller = caller.f_back
        return True

    def _step(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """Put down what changed to the line that was at work since the last event."""
        self._lines += 1
        if self._lines > LINES_MAX:
            return None
        now = self._now()
        if now != self._last:
            owner = self._owner()
            for changes, before, after in zip(self._changes, self._last, now, strict=True):
                if owner is not None and after != before:
                    changes[owner] = changes.get(owner, 0) + after - before
            self._last = now
        self._frame = frame.f_back if event == "return" else frame
        self._line = self._frame.f_lineno if self._frame is not None else 0
        return self._step

    def _owner(self) -> tuple[Frame, tuple[int, int]] | None:
        """Return the line of tested code that is at work, and where its function begins and ends."""
        frames: list[Frame] = []
        functions: dict[Frame, tuple[int, int]] = {}
        frame, line = self._frame, self._line
        while frame is not None and len(frames) < FRAMES:
            place = (frame.f_code.co_filename, line)
            frames.append(place)
            functions.setdefault(place, extent(frame))
            frame = frame.f_back
            line = frame.f_lineno if frame is not None else 0
        owner = self._owners.owner(frames) if frames else None
        if owner is None:
            return None
        callers = (each for each in frames if self._owners.is_tested(each[0]))
        self._callers[owner] = self._callers.get(owner, frozenset()).union(callers)
        return owner, functions[owner]

    def _changed(self) -> Sequence[ChangedBy]:
        found: dict[tuple[Frame, tuple[int, int]], int] = {}
        for changes, before, after in zip(self._changes, self._begun, self._now(), strict=True):
            for owner, change in changes.items():
                if after > before and change > 0:
                    found[owner] = found.get(owner, 0) + change
        changed = [
            ChangedBy(frame, change, function, self._callers[frame]) for (frame, function), change in found.items()
        ]
        return sorted(changed, key=lambda each: (-each.change, each.frame))


def extent(frame: FrameType) -> tuple[int, int]:
    """Return the first and the last line of the function that a frame is of."""
    lines = [line for _, _, line in frame.f_code.co_lines() if line is not None]
    return min(lines, default=0), max(lines, default=0)
