"""Slow tests: two rounds where the second moved nothing, and all of them for one test in eight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quiesce.leaks.explaining.left_files import LeftFilesSearch
from quiesce.leaks.judgement import Outcome
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import DESCRIPTORS
from quiesce.leaks.readings import Readings
from quiesce.leaks.stages.rounds import Rounds
from quiesce.leaks.stages.screening import (
    SCREENING_ROUNDS,
    SLOW_IN_FULL,
    SLOW_SECONDS,
    Screening,
    is_screened_in_full,
)
from quiesce.leaks.stages.settling import OldObjects

from .meters import ToldMeter

NAMES = [f"tests/test_model.py::test_fit[{number}]" for number in range(800)]
SPARED = next(name for name in NAMES if not is_screened_in_full(name))
IN_FULL = next(name for name in NAMES if is_screened_in_full(name))

SLOW = 2 * SLOW_SECONDS
QUICK = SLOW_SECONDS / 2


class Screened:
    """A test whose runs take some work each, the last of these from then on, and leave ``left(runs)`` things."""

    def __init__(self, name: str, *work_seconds: float, left: Callable[[int], int] = lambda runs: 7) -> None:
        self.runs, self._now, self._work_seconds = 0, 0.0, work_seconds
        plan = Plan(name=name)
        meter = ToldMeter(lambda: left(self.runs))
        readings = Readings([meter], plan, collect=lambda: None)
        old = OldObjects()
        files = LeftFilesSearch(Owners(()))
        rounds = Rounds(self._run, lambda: False, lambda: None)
        screening = Screening(readings, rounds, old, plan, files, clock=lambda: self._now)
        try:
            self.families = screening.moving()
        finally:
            old.release()

    def _run(self) -> Outcome:
        self._now += self._work_seconds[min(self.runs, len(self._work_seconds) - 1)]
        self.runs += 1
        return Outcome.PASSED


@pytest.fixture(autouse=True)
def _no_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.leaks.stages.screening.OtherThreads.ran", lambda self: 0)


def test_a_slow_test_whose_second_run_moves_nothing_has_two() -> None:
    screened = Screened(SPARED, SLOW)
    assert (screened.runs, screened.families) == (2, frozenset())


@pytest.mark.parametrize(
    ("name", "work_seconds"),
    [(SPARED, (QUICK,)), (SPARED, (SLOW, QUICK)), (SPARED, (QUICK, SLOW)), (IN_FULL, (SLOW,)), ("", (SLOW,))],
    ids=["quick", "only its first run is slow", "its first run is quick", "one of eight", "it asks for a check"],
)
def test_others_have_three(name: str, work_seconds: tuple[float, ...]) -> None:
    screened = Screened(name, *work_seconds)
    assert (screened.runs, screened.families) == (3, frozenset())


def test_a_slow_test_that_leaks_is_pursued_as_any_other() -> None:
    screened = Screened(SPARED, SLOW, left=lambda runs: runs)
    assert (screened.runs, screened.families) == (SCREENING_ROUNDS, frozenset({DESCRIPTORS}))


def test_a_slow_test_that_moved_once_is_run_until_it_is_at_rest() -> None:
    screened = Screened(SPARED, SLOW, left=lambda runs: min(runs, 2))
    assert (screened.runs, screened.families) == (SCREENING_ROUNDS, frozenset())


def test_a_leak_of_every_other_run_is_found_in_one_test_of_eight() -> None:
    assert Screened(SPARED, SLOW, left=lambda runs: (runs + 1) // 2).families == frozenset()
    assert Screened(IN_FULL, SLOW, left=lambda runs: (runs + 1) // 2).families == {DESCRIPTORS}


def test_one_of_eight_names_is_screened_in_full_and_it_is_always_the_same() -> None:
    in_full = [name for name in NAMES if is_screened_in_full(name)]
    assert 0.7 < len(in_full) * SLOW_IN_FULL / len(NAMES) < 1.3
    assert [name for name in reversed(NAMES) if is_screened_in_full(name)] == in_full[::-1]
