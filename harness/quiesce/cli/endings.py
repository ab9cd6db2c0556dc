"""How a command ends: its exit codes, ends from outside, and files or folders that the system refuses.

A person who interrupts a command is told where it was, since a backend may hang.
"""

from __future__ import annotations

import enum
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quiesce.cli.console import Console
from quiesce.model.errors import is_own_error
from quiesce.model.results import Result
from quiesce.reporting import executed_count


class ExitCode(enum.IntEnum):
    """0 to 3 are quiesce's own; the two above follow the shell's 128 + signal number."""

    NOTHING_FOUND = 0
    FINDINGS = 1
    COULD_NOT_RUN = 2
    OWN_ERROR = 3
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141


def exit_code(results: Iterable[Result], *, incomplete: bool) -> ExitCode:
    """Return 1 for a failure, else 2 where nothing was executed or the results are ``incomplete``, else 0."""
    kept = list(results)
    if any(result.verdict.is_failure for result in kept):
        return ExitCode.FINDINGS
    if incomplete or executed_count(kept) == 0:
        return ExitCode.COULD_NOT_RUN
    return ExitCode.NOTHING_FOUND


HINT: Final = "if a backend hangs, --backend served:NAME ends it and names the request"
_SIGNALS: Final = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGHUP")
    if hasattr(signal, name)  # Windows has the first one only
)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does inside the ``with``, so that reports are written and drivers end.

    Signals that are ignored (``nohup``) or that somebody else takes are left alone. So are all outside the main thread.
    """
    usual = []
    if threading.current_thread() is threading.main_thread():
        usual = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in usual:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt


def is_early_end(error: BaseException) -> bool:
    """Whether a run that this ends has results to keep: somebody interrupted it, or it met an error in quiesce."""
    return isinstance(error, KeyboardInterrupt) or is_own_error(error)


def end_early(ending: BaseException, finished: str, kept_in: Path | None, console: Console) -> ExitCode:
    """Say how far a run came that ended early, and return its exit code. Raises what it met that is quiesce's own."""
    console.complain(describe_end(ending, finished, kept_in))
    if not isinstance(ending, KeyboardInterrupt):
        raise ending
    return ExitCode.INTERRUPTED


def describe_end(ending: BaseException, finished: str, kept_in: Path | None) -> str:
    """Return the line that says how a run ended early, what was ``finished`` by then, and where it is."""
    kept = f"; they are in {kept_in}" if kept_in is not None else ""
    if isinstance(ending, KeyboardInterrupt):
        return f"interrupted: {finished} finished{kept}{describe_interruption(ending)}"
    return f"ended by an error in quiesce itself: {finished} finished{kept}"


def describe_interruption(interruption: KeyboardInterrupt) -> str:
    """Return where the run was interrupted, for a line that ends in it; empty where no backend was asked for anything.

    Lockstep notes the request that it waited for on the exception.
    """
    notes = getattr(interruption, "__notes__", ())
    return f"; {notes[0]}; {HINT}" if notes else ""


def explain(error: OSError) -> str:
    """Return which file it is, where that is known, and why, for one line."""
    why = error.strerror or str(error) or type(error).__name__
    return why if error.filename is None else f"'{os.fsdecode(error.filename)}': {why}"
