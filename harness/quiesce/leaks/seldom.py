"""Leaks of one run in twenty, such as those of a log that is rotated: three runs meet one by chance only.

A quick test that asks for a leak check is run twenty times more between two readings. Only if they differ, rounds of
twenty runs each follow, which are judged like any others.
"""

from __future__ import annotations

from typing import Final

from quiesce.leaks.budget import Budget
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import ANONYMOUS, C_HEAP, FREE_MEMORY
from quiesce.leaks.readings import Readings
from quiesce.leaks.rounds import Rounds

RUNS_EACH: Final = 20
"""What leaks in every twentieth run, or more often, leaks in each round of so many."""

QUICK_SHARE: Final = 1 / 5_000
"""A run that takes no longer than this share of the time for all is quick: hundreds of rounds fit in then."""

SIGN_ROUNDS: Final = 3
"""What grows in so many rounds is pursued."""

INEXACT: Final = (C_HEAP, ANONYMOUS, FREE_MEMORY)
"""These move by themselves in twenty runs: glibc keeps each text that the environment ever had."""


class SeldomLeaks:
    """Looks for them in one check, after a screening in which nothing moved."""

    def __init__(self, readings: Readings, rounds: Rounds, plan: Plan, budget: Budget) -> None:
        self._readings = readings
        self._rounds = rounds
        self._plan = plan
        self._budget = budget

    def moving(self) -> frozenset[str]:
        """Return the families that grow in rounds of twenty runs, and leave the rounds as long if there are any.

        A test that may grow by some bytes a run is left alone. Raises :class:`Stopped`.
        """
        run_seconds = self._budget.elapsed_seconds / self._rounds.runs
        if not self._plan.looks_longer or self._plan.limit_bytes or run_seconds > QUICK_SHARE * self._budget.seconds:
            return frozenset()
        self._rounds.runs_each = RUNS_EACH
        self._readings.take()
        for steps in range(1, SIGN_ROUNDS + 1):
            self._rounds.repeat()
            self._readings.take()
            if not self._rising(steps):
                self._rounds.runs_each = 1
                return frozenset()
        return self._rising(SIGN_ROUNDS)

    def _rising(self, steps: int) -> frozenset[str]:
        return frozenset(quantity.family for quantity in self._readings.rising(steps)).difference(INEXACT)
