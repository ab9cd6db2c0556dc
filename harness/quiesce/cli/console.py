"""The two streams of a command: answers on standard output, complaints and progress on standard error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from quiesce.reporting.palette import COLOURED, PLAIN, Palette
from quiesce.reporting.text import clean_line


def choose_palette(stream: TextIO, environment: Mapping[str, str]) -> Palette:
    """Return colours for a terminal that wants them: not where ``NO_COLOR`` is set (no-color.org) or ``TERM=dumb``."""
    wanted = stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    return COLOURED if wanted else PLAIN


class Console:
    """Where a command writes. Progress is one line that is rewritten, and only where a person watches it."""

    def __init__(self, output: TextIO, errors: TextIO, environment: Mapping[str, str]) -> None:
        self._output = output
        self._errors = errors
        self._watched = errors.isatty() and environment.get("TERM") != "dumb"
        self.palette = choose_palette(output, environment)

    def write(self, text: str) -> None:
        """Write ``text``, which ends in a line feed, to standard output. Raises :class:`BrokenPipeError`."""
        self._output.write(text)
        self._output.flush()

    def complain(self, text: str) -> None:
        """Write one line to standard error, cleaned, behind the program's name."""
        self._errors.write(f"quiesce: {clean_line(text)}\n")
        self._errors.flush()

    def progress(self, done: int, total: int, what: str) -> None:
        """Show how far a command is; nothing where standard error is no terminal."""
        if self._watched:
            self._errors.write(f"\r\x1b[K{done}/{total} {clean_line(what)}"[:100])
            self._errors.flush()

    def end_progress(self) -> None:
        """Take the progress line away."""
        if self._watched:
            self._errors.write("\r\x1b[K")
            self._errors.flush()
