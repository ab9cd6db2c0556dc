"""The two streams of a command: answers on standard output, complaints and progress on standard error."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TextIO

from quiesce.reporting.palette import COLOURED, PLAIN, Palette
from quiesce.reporting.text import clean_line


def choose_palette(stream: TextIO, environment: Mapping[str, str]) -> Palette:
    """Return colours for a terminal that wants them: not where ``NO_COLOR`` is set (no-color.org) or ``TERM=dumb``."""
    wanted = stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    return COLOURED if wanted else PLAIN


def discard(stream: TextIO) -> None:
    """Send what a stream still holds nowhere: the interpreter writes it again at exit, and complains."""
    with contextlib.suppress(OSError):  # a stream without a file, which nobody flushes at exit
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Console:
    """Where a command writes. Progress is one line that is rewritten, and only where a person watches it.

    What standard error does not take is lost, and the command goes on: its verdict does not depend on who listens.
    """

    def __init__(self, output: TextIO, errors: TextIO, environment: Mapping[str, str]) -> None:
        self._output = output
        self._errors = errors
        self._watched = errors.isatty() and environment.get("TERM") != "dumb"
        self._prepares = False
        self.palette = choose_palette(output, environment)

    def write(self, text: str) -> None:
        """Write ``text``, which ends in a line feed, to standard output. Raises :class:`OSError`, which names it."""
        self._end_preparing()
        try:
            self._output.write(text)
            self._output.flush()
        except BrokenPipeError:
            discard(self._output)
            raise
        except OSError as error:
            discard(self._output)
            raise OSError(error.errno, error.strerror, "standard output") from error

    def complain(self, text: str) -> None:
        """Write one line to standard error, cleaned, behind the program's name."""
        self._end_preparing()
        self._tell(f"quiesce: {clean_line(text)}\n")

    def progress(self, done: int, total: int, what: str) -> None:
        """Show how far a command is; nothing where standard error is no terminal."""
        if self._watched:
            self._tell(f"\r\x1b[K{done}/{total} {clean_line(what)}"[:100])

    def preparing(self, what: str) -> None:
        """Show what is made ready, which may be compiled first, until the next line; nothing without a terminal."""
        if self._watched:
            self._tell(f"\r\x1b[Kpreparing {clean_line(what)}"[:100])
            self._prepares = True

    def move_errors(self, stream: TextIO) -> None:
        """Write complaints and progress to ``stream`` from here on."""
        self._errors = stream

    def end_progress(self) -> None:
        """Take the progress line away."""
        if self._watched:
            self._tell("\r\x1b[K")

    def _end_preparing(self) -> None:
        if self._prepares:
            self._prepares = False
            self.end_progress()

    def settle(self) -> None:
        """Leave nothing in standard error's buffer that the interpreter could fail on at exit."""
        self._tell("")

    def _tell(self, text: str) -> None:
        try:
            self._errors.write(text)
            self._errors.flush()
        except OSError:
            discard(self._errors)
