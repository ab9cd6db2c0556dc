"""The two streams of a command: answers on standard output, complaints and progress on standard error.

Text that libraries write to standard error is kept out of a command's own, in a file that it names. In a step of GitHub
Actions findings are also written as annotations of their lines.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

from quiesce.model.results import Result
from quiesce.model.wording import counted
from quiesce.reporting import COLOURED, PLAIN, Palette, clean_line


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


def tell_github(results: Sequence[Result], console: Console) -> None:
    """Write the annotations, if this is a step of GitHub Actions."""
    from quiesce.reporting import checkout, finding_lines

    here = Path.cwd()
    if workspace := checkout(here):
        console.write("".join(f"{line}\n" for line in finding_lines(results, [here], workspace)))
