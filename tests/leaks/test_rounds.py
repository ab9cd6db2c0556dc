"""Rounds of a check: how they are counted, when they stop, and how long they may take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quiesce.leaks.judgement import Outcome
from quiesce.leaks.stages.rounds import Budget, Rounds, Stopped

PASSED, FAILED, OVER = Outcome.PASSED, Outcome.FAILED, Outcome.OVER


class Scripted:
    """Rounds that end as they are told, with what is measured around them."""

    def __init__(self, *outcomes: Outcome, is_measured: bool = True) -> None:
        self.outcomes: Iterator[Outcome] = iter(outcomes)
        self.calls: list[str] = []
        self._is_measured = is_measured
        self.rounds = Rounds(lambda: next(self.outcomes), self._calm, lambda: self.calls.append("disturb"))

    def _calm(self) -> bool:
        self.calls.append("calm")
        return self._is_measured

    def stopped(self, repeats: int) -> Stopped:
        self.rounds.first()
        for _ in range(repeats - 1):
            self.rounds.repeat()
        with pytest.raises(Stopped) as stopped:
            self.rounds.repeat()
        return stopped.value


def test_rounds_and_runs_are_counted() -> None:
    rounds = Scripted(*[PASSED] * 3).rounds
    rounds.first()
    rounds.repeat()
    rounds.repeat()
    assert (rounds.count, rounds.runs, rounds.outcome) == (3, 3, PASSED)


def test_nothing_is_repeated_that_was_skipped() -> None:
    script = Scripted(OVER)
    with pytest.raises(Stopped) as stopped:
        script.rounds.first()
    assert (str(stopped.value), stopped.value.unstable) == ("", False)
    assert script.rounds.count == 1


def test_a_round_that_is_skipped_later_ends_them() -> None:
    stopped = Scripted(PASSED, PASSED, OVER).stopped(2)
    assert (str(stopped), stopped.unstable) == ("round 3 was skipped, or the run ends early", False)


def test_all_rounds_may_fail() -> None:
    rounds = Scripted(FAILED, FAILED).rounds
    rounds.first()
    rounds.repeat()
    assert rounds.outcome is FAILED


def test_a_round_that_goes_another_way_is_unstable() -> None:
    script = Scripted(PASSED, FAILED, is_measured=False)
    stopped = script.stopped(1)
    assert str(stopped) == f"round 2 {FAILED.value}, although the rounds before it {PASSED.value}"
    assert stopped.unstable
    assert script.calls == ["calm"]


@pytest.mark.parametrize("later", [(FAILED,), (PASSED, FAILED), (PASSED, PASSED, PASSED)], ids=str)
def test_it_is_unstable_unless_the_measurements_make_it_so(later: tuple[Outcome, ...]) -> None:
    script = Scripted(PASSED, FAILED, *later)
    assert script.stopped(1).unstable
    assert script.calls == (["calm", "disturb", "calm"] if len(later) == 3 else ["calm"])


def test_a_round_that_the_measurements_change_says_so() -> None:
    script = Scripted(PASSED, PASSED, FAILED, PASSED, PASSED, FAILED, FAILED)
    stopped = script.stopped(2)
    expected = f"round 3 {FAILED.value} because of the check's own measurements; without them it {PASSED.value}"
    assert (str(stopped), stopped.unstable) == (expected, False)
    assert script.calls == ["calm", "disturb", "calm"]


def test_the_time_is_counted_from_the_beginning() -> None:
    now = [100.0]
    budget = Budget(10.0, lambda: now[0])
    now[0] += 5.0
    budget.begin()
    assert budget.elapsed_seconds == 0.0
    now[0] += 10.0
    assert not budget.is_used_up()
    now[0] += 0.5
    assert budget.is_used_up()
    assert budget.over(7, ["threads", "the C heap"]) == (
        "something still grows after 7 rounds (threads, the C heap), and its 10 s are over; raise "
        "--quiesce-leak-seconds"
    )
