"""Whether other threads have run: one that only waits moves nothing that is counted."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Final

from quiesce.leaks.system_calls import SystemCalls

_IS_RUNNING: Final = re.compile(r"^State:\tR", re.MULTILINE)
_SWITCHES: Final = re.compile(r"^(?:non)?voluntary_ctxt_switches:\t(\d+)$", re.MULTILINE)
"""Fields of a thread's ``status`` (proc(5)): a thread that has run since has been switched to, and away from again."""

RUNNING: Final = -1


class OtherThreads:
    """Remembers what the other threads of the process have done. Where the system does not tell, any may have run."""

    def __init__(self, folder: str = "/proc/self/task") -> None:
        self._folder = folder if SystemCalls.is_folder(folder) else ""
        self._switches: Mapping[str, int] = {}

    def remember(self) -> None:
        """Begin to watch them."""
        self._switches = self._read()

    def have_run(self) -> bool:
        """Whether one has run, begun or ended since, or runs right now."""
        return self.ran() > 0

    def ran(self) -> int:
        """Return how many have."""
        if not self._folder:
            return threading.active_count() - 1
        before, now = self._switches, self._read()
        return sum(now.get(each) in (RUNNING, None) or now[each] != before.get(each) for each in {*before, *now})

    def _read(self) -> Mapping[str, int]:
        """Return how often each other thread was switched to or away from."""
        if not self._folder:
            return {}
        own = str(threading.get_native_id())
        switches = {}
        for task in SystemCalls.list_folder(self._folder):
            if task != own:
                try:
                    with SystemCalls.open_file(
                        f"{self._folder}/{task}/status", encoding="ascii", errors="replace"
                    ) as file:
                        status = file.read()
                except OSError:
                    continue  # it has just ended
                counts = [int(count) for count in _SWITCHES.findall(status)]
                switches[task] = RUNNING if _IS_RUNNING.search(status) or not counts else sum(counts)
        return switches
