"""Signals that end a run from outside, given to the program of the run: it cleans up, and is judged after that."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_TAKEN: Final = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}
"""Signals, and their handlers in a Python program that has set none."""


class SignalRelay:
    """Gives signals to a program, also those that came while it was started.

    A terminal sends an interrupt (Ctrl-C) to all processes in the foreground, so the program has the first one already.
    The second is sent on, for a program that did not get the first. The third kills the program.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._interrupts = 0

    def attach(self, process: subprocess.Popen[bytes]) -> None:
        """Name the program."""
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def _take(self, number: int, _: object) -> None:
        self._interrupts += number == signal.SIGINT
        if self._process is None:
            self._early.append(number)
        elif number != signal.SIGINT or self._interrupts == 2:
            self._process.send_signal(number)
        elif self._interrupts > 2:
            self._process.kill()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take signals inside the ``with``: in the main thread, where alone that can be, and what nobody else takes."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            before = {number: usual for number, usual in _TAKEN.items() if signal.getsignal(number) is usual}
        for number in before:
            signal.signal(number, self._take)
        try:
            yield
        finally:
            for number, usual in before.items():
                signal.signal(number, usual)
