"""How many rounds are run until something has come to rest, or has grown for long enough to be a leak."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quiesce.leaks.judgement import Outcome
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, DESCRIPTORS, FREE_MEMORY, PYTHON, THREADS
from quiesce.leaks.readings import Readings
from quiesce.leaks.stages.endurance import (
    ENDURANCE_WINDOW,
    FILLING_ROUNDS_MAX,
    LARGE_BYTES,
    LARGE_ROUNDS,
    SLOW_ROUNDS,
    STEADY_ROUNDS,
    Endurance,
)
from quiesce.leaks.stages.rounds import ALL, ENDURANCE, TRACES, Budget, Rounds, Stopped
from quiesce.leaks.stages.settling import BoundedCaches, OldObjects

from .meters import ToldMeter

MOST = 64
Growth = Callable[[int], int]


class Caches(BoundedCaches):
    """Caches whose rings fill until a round."""

    watched: Callable[[], int]

    def __init__(self, until: int = 0) -> None:
        self.until, self.emptied = until, 0

    def empty_the_librarys(self) -> None:
        self.emptied += 1

    def rings_have_filled(self) -> bool:
        return self.watched() < self.until


class Watched:
    """One check of code that has left so much behind after each round."""

    def __init__(
        self,
        grown: Growth,
        family: str = DESCRIPTORS,
        *,
        unit: str = "things",
        beside: Growth = lambda _: 7,
        seconds_each: float = 0.0,
        caches: Caches | None = None,
    ) -> None:
        self.now = 0.0
        self._seconds_each = seconds_each
        self.rounds = Rounds(self._run, lambda: False, lambda: None)
        meter = ToldMeter(lambda: grown(self.rounds.count), family, unit)
        other = ToldMeter(lambda: beside(self.rounds.count), THREADS if family != THREADS else DESCRIPTORS)
        plan = Plan(seconds=100.0)
        readings = Readings([meter, other], plan, collect=lambda: None)
        self.endurance = Endurance(readings, self.rounds, OldObjects(), plan, Budget(plan.seconds, lambda: self.now))
        self.caches = caches or Caches()
        self.caches.watched = lambda: self.rounds.count
        self.rounds.first()
        self.now = 0.0
        readings.start_over()

    def _run(self) -> Outcome:
        self.now += self._seconds_each
        return Outcome.PASSED

    def run(self, most: int = MOST, share: float = ENDURANCE) -> int:
        """Return after how many rounds it ended."""
        self.endurance.run(self.caches, most, share)
        assert self.endurance.ended == self.rounds.count
        assert self.caches.emptied == self.rounds.count - 1
        return self.rounds.count - 1

    @property
    def moving(self) -> list[str]:
        return [quantity.family for quantity in self.endurance.moving()]


def test_what_is_at_rest_is_watched_for_a_window() -> None:
    watched = Watched(lambda _: 5)
    assert watched.run() == ENDURANCE_WINDOW + 1, "so many steps need one reading more"
    assert watched.moving == []


@pytest.mark.parametrize(
    ("last", "rounds"), [(1, 7), (3, 8), (10, 15), (14, 20), (18, 25), (27, 38), (28, 40), (44, MOST), (45, None)]
)
def test_what_warms_up_has_to_rest_for_a_third_of_its_rounds_and_a_quarter_of_all(
    last: int, rounds: int | None
) -> None:
    watched = Watched(lambda count: min(count, last))
    assert watched.run() == (rounds or MOST)
    assert watched.moving == ([] if rounds else [DESCRIPTORS])


def test_what_grows_all_the_time_is_watched_for_as_long_as_a_leak_lasts() -> None:
    for most in (16, MOST):
        watched = Watched(lambda count: 3 * count)
        assert (watched.run(most), watched.moving) == (most, [DESCRIPTORS])


@pytest.mark.parametrize(
    ("grown", "family", "beside", "rounds"),
    [
        (lambda count: 3 * count, PYTHON, lambda _: 7, STEADY_ROUNDS),
        (lambda count: 3 * count, C_HEAP, lambda _: 7, STEADY_ROUNDS),
        (lambda count: 3 * count + count % 2, PYTHON, lambda _: 7, MOST),
        (lambda count: 3 * count, PYTHON, lambda count: count, MOST),
        (lambda count: 3 * count, THREADS, lambda _: 7, MOST),
        (lambda count: 3 * max(0, count - 4), PYTHON, lambda _: 7, STEADY_ROUNDS + 2),
    ],
)
def test_memory_that_grows_by_the_same_each_round_has_shown_its_pace(
    grown: Growth, family: str, beside: Growth, rounds: int
) -> None:
    assert Watched(grown, family, beside=beside).run() == rounds


def test_only_the_first_look_ends_at_a_steady_pace() -> None:
    assert Watched(lambda count: 3 * count, PYTHON).run(share=TRACES) == MOST


@pytest.mark.parametrize(
    ("each", "unit", "rounds"),
    [
        (LARGE_BYTES // (LARGE_ROUNDS - 1) + 1, "bytes", LARGE_ROUNDS),
        (LARGE_BYTES // (LARGE_ROUNDS - 1), "bytes", LARGE_ROUNDS + 1),
        (LARGE_BYTES, "bytes", LARGE_ROUNDS),
        (LARGE_BYTES, "things", MOST),
    ],
)
def test_large_growth_is_watched_for_few_rounds(each: int, unit: str, rounds: int) -> None:
    watched = Watched(lambda count: each * (count - 1), unit=unit)
    assert watched.run() == rounds
    assert watched.endurance.is_large == (unit == "bytes")


@pytest.mark.parametrize(
    ("share", "seconds_each", "rounds"),
    [
        (ENDURANCE, 1.0, 41),
        (ENDURANCE, 3.0, SLOW_ROUNDS),
        (TRACES, 1.0, 71),
        (TRACES, 10.0, LARGE_ROUNDS),
        (ALL, 1.0, 101),
        (ALL, 10.0, 11),
        (ALL, 20.0, LARGE_ROUNDS),
    ],
)
def test_a_slow_test_ends_with_its_share_of_the_time(share: float, seconds_each: float, rounds: int) -> None:
    assert Watched(lambda count: count, seconds_each=seconds_each).run(most=200, share=share) == rounds


def test_no_verdict_where_the_time_is_over_before_there_are_enough_rounds() -> None:
    watched = Watched(lambda count: count, seconds_each=10.0)
    with pytest.raises(Stopped, match=r"still grows after 12 rounds \(told of descriptors\), and its 100 s are over"):
        watched.run()
    assert Watched(lambda count: count, seconds_each=10.0).run(most=8) == 8, "so few are enough"


@pytest.mark.parametrize(
    ("grown", "family"),
    [(lambda count: 1000 - count, DESCRIPTORS), (lambda count: count, FREE_MEMORY)],
    ids=["it falls", "a coarse figure has grown by little"],
)
def test_what_says_nothing_is_at_rest_when_the_time_is_over(grown: Growth, family: str) -> None:
    assert Watched(grown, family, unit="bytes", seconds_each=10.0).run() == 11


@pytest.mark.parametrize(("until", "rounds"), [(0, MOST), (MOST + 1, MOST), (MOST + 2, 2 * MOST)])
def test_a_ring_that_is_filling_is_waited_for(until: int, rounds: int) -> None:
    assert Watched(lambda count: count, caches=Caches(until)).run() == rounds


@pytest.mark.parametrize("each", [1, LARGE_BYTES])
def test_a_ring_that_takes_too_long_to_fill_ends_without_a_verdict(each: int) -> None:
    watched = Watched(lambda count: each * count, unit="bytes", caches=Caches(until=10**6))
    with pytest.raises(Stopped, match="still filling"):
        watched.run()
    assert watched.rounds.count - 1 == (LARGE_ROUNDS if each > 1 else FILLING_ROUNDS_MAX // MOST * MOST + MOST)


@pytest.mark.parametrize("family", [C_HEAP, PYTHON])
def test_the_c_heap_may_hide_a_leak_on_what_malloc_keeps_at_hand(family: str) -> None:
    """It grows once, early, and then rests for as long as a leak can live on chunks that are free."""
    watched = Watched(lambda count: int(count > 2), family)
    watched.endurance.at_hand = 20
    assert watched.run() == (23 if family == C_HEAP else 8)
