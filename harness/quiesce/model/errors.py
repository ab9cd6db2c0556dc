"""The exceptions of quiesce.

    QuiesceError
    ├── CaseError                a case file is wrong: file, line, what, and what to write instead
    ├── ConfigurationError       an option, an ini key or an argument is wrong
    ├── BackendUnavailable       a backend cannot work on this machine; says what to install
    ├── UnreadableObject         a program or library is no ELF file that could run here
    ├── RefusedKernel            a kernel can't be executed: why, which instruction, at which line of its PTX
    └── SubjectNotBuilt          a release under test could not be fetched or built; its output is kept

A misbehaving backend is never an exception: it is a finding. Any other exception but :class:`OSError` is an error in
quiesce itself; :func:`reproduced_by` notes on it how it comes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_REPRODUCE: Final = "reproduce: "


class QuiesceError(Exception):
    """The root of every exception that quiesce raises on purpose."""


class CaseError(QuiesceError):
    """A case file cannot be read. The text is ``file:line: what is wrong; what to write instead``."""

    def __init__(self, path: str, line: int, what: str, instead: str) -> None:
        super().__init__(f"{path}:{line}: {what}; {instead}")
        self.path = path
        self.line = line
        self.what = what
        self.instead = instead


class ConfigurationError(QuiesceError):
    """An option is wrong; the text says what follows from it and what to write instead."""


class BackendUnavailable(QuiesceError):
    """A backend cannot work here. ``remedy`` says what to install or set."""

    def __init__(self, backend: str, reason: str, remedy: str) -> None:
        super().__init__(f"backend '{backend}' cannot work here: {reason}; {remedy}")
        self.backend = backend
        self.reason = reason
        self.remedy = remedy


class UnreadableObject(QuiesceError):
    """A file is no readable executable or shared object for Linux x86-64. ``what`` says why."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: not a readable ELF file for x86-64: {what}; name a program or a shared library")
        self.path = path
        self.what = what


class RefusedKernel(QuiesceError):
    """A kernel can't be executed. ``reason`` says why, ``instruction`` and ``line`` say where in its PTX, if known."""

    def __init__(self, reason: str, instruction: str = "", line: int = 0) -> None:
        where = f"line {line} of its PTX: " if line else ""
        shown = " ".join(instruction.split())[:200]
        super().__init__(f"{where}{reason}" + (f": {shown}" if shown else ""))
        self.reason = reason
        self.instruction = shown
        self.line = line


class SubjectNotBuilt(QuiesceError):
    """A command that fetches or builds a subject failed. ``output`` is what it wrote, ``log`` where all of it is."""

    def __init__(self, command: str, status: str, output: str, log: Path) -> None:
        super().__init__(f"'{command}' ended with {status}; see {log}")
        self.command = command
        self.output = output
        self.log = log


class FailedInWorker(RuntimeError):
    """An error in quiesce itself that another process of its own ended with. The text is the traceback from there."""


def is_own_error(error: BaseException) -> bool:
    """Whether an exception is an error in quiesce itself: not one on purpose, of a file, or from outside."""
    return isinstance(error, Exception) and not isinstance(error, QuiesceError | OSError)


@contextmanager
def reproduced_by(command: str) -> Iterator[None]:
    """Note on an error in quiesce itself the command that shows it again; the innermost note holds."""
    try:
        yield
    except Exception as error:
        if is_own_error(error) and not reproducing(error):
            error.add_note(f"{_REPRODUCE}{command}")
        raise


def reproducing(error: BaseException) -> str:
    """Return the command that shows an error in quiesce itself again; empty where nobody noted one."""
    noted = (note for note in getattr(error, "__notes__", ()) if note.startswith(_REPRODUCE))
    return next(noted, "").removeprefix(_REPRODUCE)
