"""Files that rounds leave in the temporary folder. They are told, and no test fails for them: others use it as well.

Its time of change says for the price of one call that something was made or removed there. Only if there are more
entries by then, a few more rounds show whether each of them leaves as many, and which lines make them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from quiesce.leaks.explaining.lines import ROUNDS, Counts, LineWatch
from quiesce.leaks.judgement import LeftFiles
from quiesce.leaks.owners import Owners
from quiesce.leaks.stages.rounds import Stopped
from quiesce.leaks.stages.settling import collect_garbage
from quiesce.leaks.system_calls import SystemCalls

STEP_NANOSECONDS: Final = 10_000_000
"""File systems take the time of change from the kernel's clock, which advances in steps of up to 10 ms."""

DEFAULT: Final = "/tmp"  # noqa: S108 - nothing is written there
"""The folder where no variable names another (``tempfile`` on POSIX)."""


class Entries:
    """Counts the entries of a folder; where nothing has changed since the last count, that costs one call."""

    def __init__(self, folder: str, now: Callable[[], int] = time.time_ns) -> None:
        self._folder = folder
        self._now = now
        self._changed = -1
        self._count = 0

    def count(self) -> int:
        """Return how many there are; none if the folder cannot be read."""
        changed = SystemCalls.changed(self._folder)
        if changed != self._changed or self._now() - changed < STEP_NANOSECONDS:
            self._changed = changed
            self._count = len(names_in(self._folder))
        return self._count


class LeftFilesSearch:
    """Looks for files that the rounds of one check leave."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._entries = Entries("")
        self._folder = ""
        self._count = 0

    def begin(self) -> None:
        """Count what is there before the rounds that are looked at."""
        self._folder = temporary_folder()
        self._entries = Entries(self._folder)
        self._count = self._entries.count()

    def may_be_left(self, rounds: int) -> bool:
        """Whether as many rounds as have gone by may have left a file each."""
        return self._entries.count() - self._count >= rounds

    def find(self, run_round: Callable[[], None]) -> LeftFiles | None:
        """Run a few rounds; return what each of them leaves, if it is as much in each."""
        seen = [frozenset(names_in(self._folder))]

        def run() -> None:
            run_round()
            collect_garbage()
            seen.append(frozenset(names_in(self._folder)))

        try:
            lines = LineWatch(self._owners, Counts(lambda: (self._entries.count(),))).watch(run)
        except Stopped:
            return None  # it is only told, and who watches its lines may have changed how a round ended
        left = [(after - before) & seen[-1] for before, after in pairwise(seen)]
        if not left[0] or len(set(map(len, left))) > 1:
            return None  # others make files here, too
        makers = tuple(each.frame for each in lines if each.change % ROUNDS == 0)
        return LeftFiles(len(left[0]), min(left[-1]), makers)


def names_in(folder: str) -> Sequence[str]:
    """Return the names in a folder; none if it cannot be read."""
    try:
        return SystemCalls.list_folder(folder)
    except OSError:
        return ()


def temporary_folder() -> str:
    """Return the folder that :mod:`tempfile` uses.

    It is not asked itself: to find out it makes a file, and what it finds holds from then on.
    """
    known = getattr(sys.modules.get("tempfile"), "tempdir", None)
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    return known if isinstance(known, str) else next(filter(None, named), DEFAULT)
