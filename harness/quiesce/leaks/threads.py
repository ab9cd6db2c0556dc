"""Threads of the process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Hashable, Mapping
from typing import Final

from quiesce.leaks.quantities import THREADS, Quantity
from quiesce.leaks.system_calls import SystemCalls

ALIVE: Final = Quantity(THREADS, "threads", "threads")

SHOWN: Final = 5
ENDING_STEPS: Final = 10
ENDING_SECONDS: Final = 0.001


class ThreadMeter:
    """Counts the threads that the system lists, those of native libraries among them; elsewhere those Python knows."""

    family = THREADS

    def __init__(self, folder: str = "/proc/self/task") -> None:
        self._folder = folder if SystemCalls.is_folder(folder) else ""
        self._count = 0
        self._known: frozenset[int | None] = frozenset()

    def absent(self) -> str:
        """Be there everywhere."""
        return ""

    def settle(self) -> None:
        """Give threads that are just ending a moment: a joined thread's last steps are the system's."""
        for _ in range(ENDING_STEPS):
            if self._alive() <= self._count:
                return
            SystemCalls.sleep(ENDING_SECONDS)

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        self._count = self._alive()
        return {ALIVE: self._count}

    def _alive(self) -> int:
        return len(SystemCalls.list_folder(self._folder)) if self._folder else threading.active_count()

    def present(self) -> frozenset[Hashable]:
        """Return each by its number."""
        if self._folder:
            return frozenset(SystemCalls.list_folder(self._folder))
        return frozenset(thread.ident for thread in threading.enumerate())

    def observe(self) -> None:
        """Remember which are alive."""
        self._known = frozenset(thread.ident for thread in threading.enumerate())

    def rest(self) -> None:
        """Forget them."""
        self._known = frozenset()

    def origin(self, quantity: Quantity) -> str:
        """Name the first new thread and what it runs."""
        return next(iter(self._started()), "native code")

    def evidence(self, quantity: Quantity) -> str:
        """Name the new threads."""
        return "\n".join(self._started()[:SHOWN])

    def _started(self) -> list[str]:
        frames = sys._current_frames()
        lines = []
        for thread in threading.enumerate():
            if thread.ident in self._known:
                continue
            frame = frames.get(thread.ident or 0)
            while frame is not None and frame.f_code.co_filename == _THREADING:
                frame = frame.f_back
            where = f" in {frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
            lines.append(f"thread '{thread.name}'{where}")
        return lines


_THREADING: Final = threading.__file__
