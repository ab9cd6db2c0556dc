"""Keeps the text that libraries write to standard error out of a command's own output, in a file that it names."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from quiesce.amounts import counted
from quiesce.cli.console import Console

FILE_NAME: Final = "stderr.txt"
_STANDARD_ERROR: Final = 2


@contextlib.contextmanager
def kept_back(console: Console, directory: Path | None) -> Iterator[None]:
    """Send standard error to a file, and only the console's lines to where it went before.

    Libraries write to the descriptor from native code, so it is not enough to replace Python's stream. At the end the
    file moves to ``directory`` (None: it stays in the folder for temporary files), and one line says how long it is.
    An empty file is removed.
    """
    errors = sys.stderr
    if not _is_standard_error(errors):
        yield
        return
    errors.flush()
    if directory is not None:
        (directory / FILE_NAME).unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile(prefix="quiesce-stderr-", suffix=".txt", delete=False) as file:
        kept = Path(file.name)
        before = os.dup(_STANDARD_ERROR)
        watch = _Watch(kept, before)
        os.dup2(file.fileno(), _STANDARD_ERROR)
    with os.fdopen(before, "w", encoding=errors.encoding, errors="backslashreplace") as stream:
        console.move_errors(stream)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                errors.flush()
            os.dup2(before, _STANDARD_ERROR)
            console.move_errors(errors)
            watch.end()
            _tell(kept, directory, console)


def _is_standard_error(stream: TextIO) -> bool:
    """Whether a stream is that of the process; a test's may be another."""
    try:
        return stream.fileno() == _STANDARD_ERROR
    except io.UnsupportedOperation:  # it has no descriptor
        return False


class _Watch:
    """A process that shows the file if this one is killed: its last words are often what killed it."""

    def __init__(self, kept: Path, before: int) -> None:
        hears, self._says = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(self._says)
            _show_unless_told(hears, kept, before)
        os.close(hears)

    def end(self) -> None:
        """End the process: this one lives, and tells where the file is."""
        with contextlib.suppress(OSError):  # somebody killed it
            os.write(self._says, b".")
        os.close(self._says)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._process, 0)


def _show_unless_told(hears: int, kept: Path, before: int) -> None:
    """Wait for the other process to say that it goes on, or to be gone; then copy the file. Never returns."""
    try:
        for number in (signal.SIGINT, signal.SIGHUP):  # they come to both
            signal.signal(number, signal.SIG_IGN)
        if not os.read(hears, 1):
            os.write(before, kept.read_bytes())
            kept.unlink()
    finally:
        os._exit(0)


def _tell(kept: Path, directory: Path | None, console: Console) -> None:
    lines = len(kept.read_bytes().splitlines())
    if not lines:
        kept.unlink()
        return
    if directory is not None and directory.is_dir():
        (directory / FILE_NAME).unlink(missing_ok=True)  # a link there would be followed from another file system
        kept = Path(shutil.move(kept, directory / FILE_NAME))
    are = "is" if lines == 1 else "are"
    console.complain(
        f"{counted(lines, 'line')} that libraries wrote to standard error {are} in {kept}; --verbose shows "
        f"{'it' if lines == 1 else 'them'} here"
    )
