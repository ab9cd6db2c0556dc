"""Leaks of one run in many: twenty runs at a time, of quick tests that ask for a longer look."""

from __future__ import annotations

import pytest

from quiesce.leaks.judgement import Outcome
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import ANONYMOUS, C_HEAP, DESCRIPTORS, FREE_MEMORY, PYTHON, THREADS
from quiesce.leaks.readings import Readings
from quiesce.leaks.stages.rounds import Budget, Rounds
from quiesce.leaks.stages.screening import QUICK_SECONDS, RUNS_EACH, TIMED_RUNS, SeldomLeaks

from .meters import ToldMeter

LONGER = Plan(looks_longer=True, seconds=10.0)


class Checked:
    """Rounds of a test that leaves something in each ``every``-th of its runs, and what they say."""

    def __init__(
        self, every: int, plan: Plan = LONGER, *, family: str = PYTHON, until: int = 10**6, run_seconds: float = 0.001
    ) -> None:
        self.runs, self.now = 0, 0.0
        meter = ToldMeter(lambda: min(self.runs, until) // every, family)
        still = ToldMeter(lambda: 7, THREADS if family != THREADS else DESCRIPTORS)
        self._run_seconds = run_seconds
        self.rounds = Rounds(self._run, lambda: False, lambda: None)
        budget = Budget(plan.seconds, lambda: self.now)
        self.rounds.first()
        readings = Readings([meter, still], plan, collect=lambda: None)
        self.families = SeldomLeaks(readings, self.rounds, plan, budget).moving()

    def _run(self) -> Outcome:
        self.runs += 1
        self.now += self._run_seconds
        return Outcome.PASSED


@pytest.mark.parametrize("every", [1, 7, RUNS_EACH])
def test_what_leaks_in_each_twentieth_run_is_found(every: int) -> None:
    checked = Checked(every)
    assert checked.families == {PYTHON}
    assert checked.runs == 1 + TIMED_RUNS + 3 * RUNS_EACH


@pytest.mark.parametrize("until", [0, 15, 35])
def test_what_comes_to_rest_is_none_and_nothing_more_is_run(until: int) -> None:
    checked = Checked(1, until=until)
    assert checked.families == frozenset()
    assert checked.runs == 1 + TIMED_RUNS + RUNS_EACH * (1 + (until > TIMED_RUNS) + (until > TIMED_RUNS + RUNS_EACH))


@pytest.mark.parametrize("family", [C_HEAP, ANONYMOUS, FREE_MEMORY])
def test_what_moves_by_itself_says_nothing(family: str) -> None:
    assert Checked(1, family=family).families == frozenset()


@pytest.mark.parametrize(
    ("plan", "run_seconds"),
    [
        (Plan(seconds=10.0), 0.001),
        (Plan(looks_longer=True, seconds=10.0, limit_bytes=1), 0.001),
    ],
    ids=["nobody asked for it", "it may grow"],
)
def test_other_tests_are_left_alone(plan: Plan, run_seconds: float) -> None:
    checked = Checked(1, plan, run_seconds=run_seconds)
    assert (checked.families, checked.runs) == (frozenset(), 1)


def test_the_quickest_of_three_runs_says_whether_all_are_quick() -> None:
    assert Checked(1, run_seconds=QUICK_SECONDS * 1.01).runs == 1 + TIMED_RUNS
    assert Checked(1, run_seconds=QUICK_SECONDS * 0.99).runs > 1 + TIMED_RUNS
