"""Checks whose time is over before a verdict, on a clock that counts rounds."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from quiesce.leaks.check import LeakCheck
from quiesce.leaks.judgement import Judgement, Outcome
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, DESCRIPTORS, Meter

from .meters import ToldHeap, ToldMeter


class Code:
    """Code that counts its rounds."""

    def __init__(self) -> None:
        self.rounds = 0

    def run(self) -> Outcome:
        self.rounds += 1
        return Outcome.PASSED

    def judge(self, read: Callable[[Callable[[], int]], Meter], told: Callable[[], int], plan: Plan) -> Judgement:
        return LeakCheck(self.run, [read(told)], plan, Owners([]), clock=lambda: float(self.rounds)).judge()


def test_growth_that_has_no_time_has_no_verdict() -> None:
    code = Code()
    judgement = code.judge(ToldMeter, lambda: code.rounds, Plan(gauges=(DESCRIPTORS,), seconds=5))
    assert judgement.growths == ()
    assert judgement.inconclusive.startswith("something still grows after ")
    why = f" rounds (told of {DESCRIPTORS}), and its 5 s are over; raise --quiesce-leak-seconds"
    assert judgement.inconclusive.endswith(why)


@pytest.mark.long
@pytest.mark.parametrize("seconds", [140, 150, 180, 230])
def test_a_leak_that_falls_at_times_is_not_clean(seconds: int) -> None:
    """It must grow for as long once more, for which there may be a few rounds, too few to see it among what sways."""
    code, sways = Code(), random.Random(seconds)
    heights: list[int] = []

    def height() -> int:
        while len(heights) <= code.rounds:
            heights.append(320 * (len(heights) + sways.choice([0, 0, 0, 30])))
        return heights[code.rounds]

    judgement = code.judge(ToldHeap, height, Plan(rounds=24, gauges=(C_HEAP,), seconds=seconds))
    assert judgement.growths or judgement.inconclusive.startswith("something still grows after ")
