"""Which line makes lists longer: what goes into the room that a list has is no allocation, so it has no trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

from quiesce.leaks.lists import REFERENCE_BYTES, Listed
from quiesce.leaks.owners import Frame, Owners
from quiesce.leaks.tracing import FRAMES, Site

ROUNDS: Final = 4
"""So many rounds show a line that makes a list longer in some of them only."""


class LongerLists:
    """Looks at lists after each line of a few rounds. A tracer that is there, as that of coverage, comes back."""

    def __init__(self, owners: Owners, lists: Sequence[Listed]) -> None:
        self._owners = owners
        self._lists = lists
        self._begun = self._lengths = self._now()
        self._frame: FrameType | None = None
        self._line = 0
        self._grown: list[dict[Frame | None, int]] = [{} for _ in lists]

    def watch(self, run_round: Callable[[], None]) -> Sequence[Site]:
        """Run rounds and return the lines of tested code behind what is longer at their end, the fastest first."""
        for _ in range(ROUNDS):
            before = sys.gettrace()
            sys.settrace(self._step)
            try:
                run_round()
            finally:
                sys.settrace(before)
                self._frame = None
        return self._sites()

    def _now(self) -> tuple[int, ...]:
        return tuple(map(len, self._lists))

    def _step(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """Put down what changed to the line that was at work since the last event."""
        now = self._now()
        if now != self._lengths:
            line = self._owner()
            for grown, before, after in zip(self._grown, self._lengths, now, strict=True):
                grown[line] = grown.get(line, 0) + after - before
            self._lengths = now
        self._frame = frame.f_back if event == "return" else frame
        self._line = self._frame.f_lineno if self._frame is not None else 0
        return self._step

    def _owner(self) -> Frame | None:
        frames: list[Frame] = []
        frame, line = self._frame, self._line
        while frame is not None and len(frames) < FRAMES:
            frames.append((frame.f_code.co_filename, line))
            frame = frame.f_back
            line = frame.f_lineno if frame is not None else 0
        return self._owners.owner(frames) if frames else None

    def _sites(self) -> Sequence[Site]:
        longer: dict[Frame, int] = {}
        for grown, before, after in zip(self._grown, self._begun, self._now(), strict=True):
            for line, entries in grown.items():
                if after > before and line is not None and entries > 0:
                    longer[line] = longer.get(line, 0) + entries
        sites = [Site(line, REFERENCE_BYTES * entries / ROUNDS, 0.0) for line, entries in longer.items()]
        return sorted(sites, key=lambda site: (-site.bytes_per_round, site.frame))
