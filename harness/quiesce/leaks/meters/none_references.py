"""References to None: native code that gives back one that it does not own, in each round.

Below CPython 3.12 None counts its references like any other object. At 0 the interpreter ends with a fatal error. Every
container and every call moves that count, so only a steady fall says something, and only if no object accounts for it.
"""

from __future__ import annotations

import gc
import itertools
import operator
import sys
from array import array
from collections.abc import Sequence
from typing import Final

from quiesce.leaks.judgement import Growth
from quiesce.leaks.meters.contents import referents, untracked
from quiesce.leaks.quantities import REFERENCES, Quantity
from quiesce.leaks.readings import growth_per_round
from quiesce.leaks.stages.rounds import Rounds
from quiesce.leaks.stages.settling import OldObjects, collect_garbage

LOST: Final = Quantity(REFERENCES, "lost references to None", "references")

ARE_COUNTED: Final = sys.version_info < (3, 12)
"""From CPython 3.12 on, None is immortal (PEP 683)."""

ORIGIN: Final = "native code that the test calls"
"""No line is named: locals come and go on each."""

SIGN_ROUNDS: Final = 8
"""What falls in so many rounds is worth the walk over all objects, which may take tenths of a second."""

ROUNDS: Final = 24
"""It is lost if it falls in so many rounds more."""

WARM_UP_ROUNDS: Final = 2
"""What is looked at in another way than before changes the number once or twice."""

REST_ROUNDS: Final = 4
FALL_ROUNDS: Final = 6
"""What stays the same for four rounds, or is not less after six, is not lost: the interpreter keeps a few when it
specialises code that ran eight times."""

CHUNK: Final = 10_000
"""So many objects are asked at once what they refer to."""


def none_references() -> int:
    """Return how many references to None there are, or 0 where they are not counted."""
    return sys.getrefcount(None) if ARE_COUNTED else 0


class NoneReferences:
    """Watches them in one check."""

    def __init__(self, rounds: Rounds, old: OldObjects) -> None:
        self._rounds = rounds
        self._old = old

    def find(self) -> tuple[Growth, ...]:
        """Run rounds for as long as references get lost; return the loss that no object accounts for."""
        if not ARE_COUNTED or not self._falling(SIGN_ROUNDS):
            return ()
        self._old.thaw()
        before = references_of_objects()
        counts = self._falling(ROUNDS)
        if not counts or counts[0] - counts[-1] - (before - references_of_objects()) < ROUNDS // 2:
            return ()
        lost = tuple(counts[0] - each for each in counts)
        return (Growth(LOST, growth_per_round(lost), lost, self._rounds.count - ROUNDS, ORIGIN),)

    def _falling(self, rounds: int) -> Sequence[int]:
        """Return the readings of so many rounds; none if a few of them in a row lose nothing."""
        counts = array("q", bytes(8 * (WARM_UP_ROUNDS + rounds + 1)))
        for index in range(len(counts)):
            self._rounds.repeat()
            collect_garbage()
            counts[index] = none_references()
            is_at_rest = index >= REST_ROUNDS and len(set(counts[index - REST_ROUNDS : index + 1])) == 1
            if is_at_rest or (index >= FALL_ROUNDS and counts[index] >= counts[index - FALL_ROUNDS]):
                return ()
        return counts[WARM_UP_ROUNDS:]


def references_of_objects() -> int:
    """Return how many references to None there are in objects that the garbage collector knows or leads to."""
    collect_garbage()
    objects = gc.get_objects()
    others = {id(each): each for each in untracked(objects, frozenset({dict, tuple}))}
    objects.extend(others.values())
    chunks = (objects[start : start + CHUNK] for start in range(0, len(objects), CHUNK))
    return sum(sum(map(operator.is_, referents(chunk), itertools.repeat(None))) for chunk in chunks)
