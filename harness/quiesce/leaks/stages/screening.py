"""Screening: a few rounds, after which most code is done, and twenty times as many for leaks of one run in twenty.

Three rounds, with a reading after the first and the third, or five where other threads ran, or six to ten where
something moved. Whatever stays the same by then does not leak.

A slow test has two rounds where the second moved nothing: of a suite of such tests, each further round costs as much as
the whole suite. So a leak of every other run is missed in half of them. Its neighbours find it: one slow test in eight
has all rounds. A hash of the test's name picks them, so that they are the same in each run, in any order and in any
process of ``pytest -n``. A test that asks for a leak check has all rounds as well.

Three runs meet by chance only what leaks in one of twenty, such as a log that is rotated. A quick test that asks for a
leak check is run twenty times more between two readings. Only if they differ, rounds of twenty runs each follow, which
are judged like any others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from zlib import crc32

from quiesce.leaks.explaining.left_files import LeftFilesSearch
from quiesce.leaks.meters.at_hand import AT_HAND_COUNT
from quiesce.leaks.meters.memory import HEAP
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, family_of
from quiesce.leaks.readings import Readings
from quiesce.leaks.stages.rounds import Budget, OtherThreads, Rounds
from quiesce.leaks.stages.settling import OldObjects

REST_WINDOW: Final = 2
"""What is at rest from the first round on runs three times: so what leaks in every other round is seen in any case."""

SCREENING_ROUNDS: Final = 6
SCREENING_WINDOW: Final = 4
"""Where something moved, or where other threads ran and may have moved it, a movement may have hidden a leak that it
went against; so more rounds must be seen in which nothing moves."""

SCREENING_ROUNDS_MAX: Final = 10
"""What did not move in the last round may be at rest soon: a few more rounds cost a fraction of what endurance does,
for which all objects of the process are looked at."""


SLOW_SECONDS: Final = 0.2
"""A test whose runs all take more work than that is slow: next to it the readings cost nothing, and rounds cost all."""

SLOW_IN_FULL: Final = 8
"""One of so many slow tests has all rounds."""


def is_screened_in_full(name: str) -> bool:
    """Whether a slow test of this name has all rounds; one without a name has."""
    return not name or crc32(name.encode(errors="surrogatepass")) % SLOW_IN_FULL == 0


class Screening:
    """Runs the first rounds of one check. ``clock`` returns seconds of work.

    ``at_hand`` is for how many a leak may live on what malloc keeps at hand. ``may_leave_files`` says that each of them
    may leave one in the temporary folder.
    """

    def __init__(
        self,
        readings: Readings,
        rounds: Rounds,
        old: OldObjects,
        plan: Plan,
        files: LeftFilesSearch,
        clock: Callable[[], float],
    ) -> None:
        self._readings = readings
        self._rounds = rounds
        self._old = old
        self._plan = plan
        self._other_threads = OtherThreads()
        self._files = files
        self._clock = clock
        self.at_hand = 0
        self.may_leave_files = False

    def moving(self) -> frozenset[str]:
        """Run them and return the families that do not stay the same. Raises :class:`Stopped`."""
        # the reported one: nothing is measured, and nothing is left out of collections
        may_be_slow = self._is_slow(self._rounds.first) and not is_screened_in_full(self._plan.name)
        self._files.begin()
        self._old.set_aside()
        self._readings.begin()
        self._other_threads.remember()
        self._readings.take()
        if may_be_slow:
            is_slow = self._is_slow(self._rounds.repeat)
            self._readings.take()
            if is_slow and not self._readings.moving(1) and not self._other_threads.have_run():
                self.may_leave_files = self._files.may_be_left(1)
                return frozenset()
        left = 1 + REST_WINDOW - self._rounds.count
        for _ in range(left):
            self._rounds.repeat()
        self._readings.take(left)
        self.may_leave_files = self._files.may_be_left(REST_WINDOW)  # garbage that holds a file is collected by now
        window = REST_WINDOW
        if self._readings.moving(REST_WINDOW) or self._other_threads.have_run():
            window = SCREENING_WINDOW
            while self._may_come_to_rest():
                self._rounds.repeat()
                self._readings.take()
        # A leak in another thread lives on what malloc keeps at hand for that thread, until it is used up.
        if not self._readings.absent_family(C_HEAP):
            self.at_hand = min(AT_HAND_COUNT * self._other_threads.ran(), self._plan.rounds - 1)
        while window <= self.at_hand and HEAP not in self._readings.moving(window):
            self._rounds.repeat()
            self._readings.take()
            window += 1
        return frozenset(quantity.family for quantity in self._readings.moving(window))

    def _is_slow(self, run_round: Callable[[], None]) -> bool:
        before = self._clock()
        run_round()
        return self._clock() - before > SLOW_SECONDS

    def _may_come_to_rest(self) -> bool:
        """Whether one more round may show that what has moved is at rest."""
        count = self._rounds.count
        if count <= SCREENING_WINDOW or not self._readings.moving(SCREENING_WINDOW):
            return count <= SCREENING_WINDOW
        return count < SCREENING_ROUNDS or (count < SCREENING_ROUNDS_MAX and not self._readings.moving(1))


RUNS_EACH: Final = 20
"""What leaks in every twentieth run, or more often, leaks in each round of so many."""

QUICK_SECONDS: Final = 0.005
"""A run of no more work than that is quick: hundreds of runs take a second or two."""

TIMED_RUNS: Final = 3
"""Of so many runs the quickest says how much work one is: a busy machine makes others longer."""

SIGN_ROUNDS: Final = 3
"""What grows in so many rounds is pursued."""


class SeldomLeaks:
    """Looks for them in one check, after a screening in which nothing moved."""

    def __init__(self, readings: Readings, rounds: Rounds, plan: Plan, budget: Budget) -> None:
        self._readings = readings
        self._rounds = rounds
        self._plan = plan
        self._budget = budget

    def moving(self) -> frozenset[str]:
        """Return the families that grow in each twenty runs.

        A test that may grow by some bytes a run is left alone. Raises :class:`Stopped`.
        """
        if not self._plan.looks_longer or self._plan.limit_bytes or not self._is_quick():
            return frozenset()
        self._readings.take()
        for steps in range(1, SIGN_ROUNDS + 1):
            for _ in range(RUNS_EACH):
                self._rounds.repeat()
            self._readings.take()
            if not self._rising(steps):
                return frozenset()
        return self._rising(SIGN_ROUNDS)

    def _is_quick(self) -> bool:
        return min(self._run_seconds() for _ in range(TIMED_RUNS)) <= QUICK_SECONDS

    def _run_seconds(self) -> float:
        before = self._budget.elapsed_seconds
        self._rounds.repeat()
        return self._budget.elapsed_seconds - before

    def _rising(self, steps: int) -> frozenset[str]:
        rising = {quantity.family for quantity in self._readings.rising(steps)}
        return frozenset(family for family in rising if not family_of(family).moves_by_itself)
