"""The processes that a program leaves behind: what outlives the program was not seen to its end."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
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
