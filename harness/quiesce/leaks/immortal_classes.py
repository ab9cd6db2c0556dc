"""Classes that are their own type, as h11's sentinels are: CPython finds them in each collection, and never frees them.

A collection clears what a class refers to, but not its type, so such a class keeps itself (``type_clear`` in CPython's
typeobject.c; 3.11 to 3.13 do so). The memory that a test leaves in this way is not a leak of the tested code.
"""

from __future__ import annotations

import gc
from typing import Final

from quiesce.leaks.rounds import Rounds
from quiesce.leaks.settling import OldObjects, collect_garbage

ROUNDS: Final = 3


class ImmortalClasses:
    """Looks for them in one check."""

    def __init__(self, rounds: Rounds, old: OldObjects) -> None:
        self._rounds = rounds
        self._old = old

    def made(self) -> str:
        """Say that each round makes some, or return an empty string. It runs rounds only if garbage cannot be freed."""
        collect_garbage()
        if not gc.collect():
            return ""
        self._old.thaw()
        counts = [immortal_classes()]
        for _ in range(ROUNDS):
            self._rounds.repeat()
            collect_garbage()
            counts.append(immortal_classes())
        made = counts[1] - counts[0]
        if made <= 0 or counts != list(range(counts[0], counts[-1] + 1, made)):
            return ""
        classes = "1 class that is its own type" if made == 1 else f"{made:,} classes that are their own type"
        return f"each round makes {classes}, which CPython never frees, so its memory is not judged"


def immortal_classes() -> int:
    """Return how many classes there are that are their own type, besides :class:`type`."""
    return sum(type(each) is each for each in gc.get_objects())
