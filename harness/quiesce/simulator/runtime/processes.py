"""The processes of a run: what its program leaves behind, what reaches it from outside, and how all of them end.

What outlives the program was not seen to its end. Signals that end a run are given to the program: it cleans up, and is
judged after that. If ``quiesce exec`` is killed, a guard ends the processes: a shell that waits until the pipe from
``quiesce exec`` is closed, for that costs next to nothing. If no word came before, the shell becomes this module.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SET_CHILD_SUBREAPER: Final = 36
"""``prctl(2)``: orphans below this process become its children."""
_PATIENCE_SECONDS: Final = 2.0
"""How long helpers have that end with their program, such as multiprocessing's resource tracker."""
_STEP_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that was still running when its program had ended.

    ``program`` is the file that it runs; ``has_runtime`` says whether it has a library of the run loaded.
    """

    process: int
    name: str
    program: Path
    has_runtime: bool


def is_running(process: int) -> bool:
    """Say whether a process has not ended; one that nobody has waited for yet has."""
    try:
        status = Path(f"/proc/{process}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(b")")[2].split()[0] not in (b"Z", b"X")  # proc_pid_stat(5)


class Descendants:
    """Inherits the processes of a program whose parents ended, so that it is known which are left at the end.

    Like the first process of a system it waits for those that end: somebody may ask whether they have.
    """

    def __init__(self) -> None:
        self._own = _children_of(os.getpid())
        self._program = 0
        self._inherits = False

    def spare(self, process: int) -> None:
        """Name a child of this process that others here wait for."""
        self._own.add(process)

    def begin(self, program: int) -> None:
        """Name the process that was started, for which its caller waits."""
        self.spare(program)
        self._program = program
        self._reap()

    @contextmanager
    def inherited(self) -> Iterator[None]:
        """Inherit inside the ``with``: in the main thread, where signals can be taken, and if nobody else does."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGCHLD) is not signal.SIG_DFL or not _inherit(whether=True):
            yield
            return
        self._inherits = True
        signal.signal(signal.SIGCHLD, self._reap)
        try:
            yield
        finally:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _inherit(whether=False)

    def _reap(self, *_: object) -> None:
        if not self._inherits or not self._program:
            return  # whose the children are is not known yet
        for process in _children_of(os.getpid()) - self._own:
            with suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)

    def left(self, folder: Path) -> tuple[Survivor, ...]:
        """Return what is still running of the run with this folder, after some time to end, if it was inherited."""
        if not self._inherits:
            return ()
        end = time.monotonic() + _PATIENCE_SECONDS
        while (running := self._running()) and time.monotonic() < end:
            time.sleep(_STEP_SECONDS)
        return tuple(filter(None, (_survivor(process, folder) for process in sorted(running))))

    def _running(self) -> set[int]:
        self._reap()
        found: set[int] = set()
        waiting = _children_of(os.getpid()) - self._own
        while waiting:
            process = waiting.pop()
            found.add(process)
            waiting |= _children_of(process) - found
        return {process for process in found if is_running(process)}


def _inherit(*, whether: bool) -> bool:
    return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0) == 0)


def _children_of(process: int) -> set[int]:
    """Return the children of a process; none where the system does not list them."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - once for each process
            with suppress(OSError):
                text = Path(f"/proc/{process}/task/{thread}/children").read_text(encoding="ascii")
                found.update(map(int, text.split()))
    return found


def _survivor(process: int, folder: Path) -> Survivor | None:
    place = Path(f"/proc/{process}")
    try:
        name = (place / "comm").read_text(encoding="utf-8", errors="replace").strip()
        program = (place / "exe").readlink()
        has_runtime = f"{folder}/lib/".encode() in (place / "maps").read_bytes()
    except PermissionError:
        return Survivor(process, name, Path(), has_runtime=False)  # of another user
    except OSError:
        return None  # it has just ended
    return Survivor(process, name, program, has_runtime)


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


_SHELL: Final = "/bin/sh"
_WAITS: Final = 'read -r word; [ "$word" = end ] || exec "$@"'
_ROUNDS_MAX: Final = 100


@contextmanager
def guarded(folder: Path, started: Callable[[int], None]) -> Iterator[None]:
    """Have the processes of the run in ``folder`` end with this one. ``started`` gets the number of the guard."""
    words = [sys.executable, "-P", "-m", "quiesce.simulator.runtime.processes", str(folder)]
    # Its own session: what ends a terminal's processes together leaves it the time to end the others.
    guard = subprocess.Popen(  # noqa: S603 - a list
        [_SHELL, "-c", _WAITS, "guard", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    started(guard.pid)
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            guard.communicate(b"end\n")


def members(folder: Path) -> set[int]:
    """Return the processes that were started for the run in ``folder``, or have one of its libraries loaded."""
    named = re.compile(re.escape(os.fsencode(folder)) + rb"(?=[/;:\0]|$)")
    loaded = os.fsencode(folder) + b"/lib/"
    found: set[int] = set()
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and int(place.name) != os.getpid():
            with suppress(OSError):
                if named.search((place / "environ").read_bytes()) or loaded in (place / "maps").read_bytes():
                    found.add(int(place.name))
    return found


def end_members(folder: Path) -> None:
    """Kill the processes of the run in ``folder``, also those that they start meanwhile."""
    for _ in range(_ROUNDS_MAX):
        found = members(folder)
        if not found:
            return
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    end_members(Path(sys.argv[1]))
