"""Ends of a command from outside, and what a person is told then: where it was, since a backend may hang."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quiesce.errors import is_own_error

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
