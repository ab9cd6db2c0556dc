"""How far the check of a test is, on a terminal: a check may take ten seconds, and pytest says nothing meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import pytest

from quiesce.leaks import Outcome
from quiesce.model.wording import counted
from quiesce.reporting import clean_line

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

QUIET_SECONDS: Final = 1.0
"""A check that takes no longer is not shown: a text that goes at once only distracts."""

PAUSE_SECONDS: Final = 0.1
"""How long a text stays at least."""

ERASE_TO_END_OF_LINE: Final = "\x1b[K"
CURSOR_BACK: Final = "\x1b[{columns}D"
"""Control sequences of ECMA-48."""

OF_CI: Final = ("CI", "BUILD_NUMBER")
"""Variables by which pytest, too, knows a machine that nobody looks at."""


class LeakProgress:
    """Shows how many runs of one test there were. ``clock`` returns seconds.

    The text stands behind what pytest has on the line, which stays as it is, with its colours; the cursor goes back.
    It is written between runs only, while pytest captures nothing. Without a ``writer`` nothing is shown.
    """

    def __init__(
        self, writer: TerminalWriter | None, name: str, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._writer = writer
        self._name = clean_line(name)
        self._seconds = seconds
        self._clock = clock
        self._runs = 0
        self._is_shown = False
        self._begun = self._last = clock()
        # Once, before the rounds: measuring fills a cache of pytest's.
        self._room = 0 if writer is None else writer.fullwidth - writer.width_of_current_line - 1

    def following(self, run_round: Callable[[], Outcome]) -> Callable[[], Outcome]:
        """Return what runs a round, and shows it."""
        return run_round if self._writer is None else lambda: self._run(run_round)

    def _run(self, run_round: Callable[[], Outcome]) -> Outcome:
        outcome = run_round()
        self._runs += 1
        now = self._clock()
        if now - self._begun > QUIET_SECONDS and now - self._last >= PAUSE_SECONDS:
            self._last = now
            self._show(f"{counted(self._runs, 'run')}, {now - self._begun:.1f} of {self._seconds:g} s")
        return outcome

    def _show(self, runs: str) -> None:
        """Show the longest text for which there is room."""
        for text in (f"  checking {self._name} for leaks: {runs}", f"  leak check: {runs}", f" {runs}"):
            if len(text) <= self._room and text.isascii():
                self._write(ERASE_TO_END_OF_LINE + text + CURSOR_BACK.format(columns=len(text)))
                self._is_shown = True
                return

    def end(self) -> None:
        """Leave the line as it was."""
        if self._is_shown:
            self._write(ERASE_TO_END_OF_LINE)
            self._is_shown = False

    def _write(self, text: str) -> None:
        if self._writer is not None:
            self._writer.write_raw(text, flush=True)


def progress_writer(config: pytest.Config, environ: Mapping[str, str] = os.environ) -> TerminalWriter | None:
    """Return where progress is shown: a terminal that a person looks at, and that tests do not write to themselves."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not reporter.isatty or hasattr(config, "workerinput"):
        return None
    if (
        config.option.verbose < 0
        or getattr(config.option, "capture", "no") == "no"
        or environ.get("TERM", "dumb") == "dumb"
    ):
        return None
    return None if any(environ.get(name) for name in OF_CI) else config.get_terminal_writer()
