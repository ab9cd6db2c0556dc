"""What readings say: whether a quantity has come to rest, and whether its growth is a leak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import pi, sqrt
from statistics import median
from typing import Final

SHORT: Final = 6
"""Up to this many readings every step counts; above, the first third of them is compared with the last."""

PACE_KEPT: Final = 2 / 3
"""Of watches of 256 rounds, two in a hundred see what leaks every other round, by chance, slow by more than that; what
leaks in four of five rounds, or blocks of random sizes in each, does not."""

NORMAL_DEVIATION: Final = 1.4826
"""The standard deviation of normal numbers for each unit of their median deviation."""


def at_rest(values: Sequence[int], window: int, allowed: int) -> bool:
    """Whether all readings of the last ``window`` rounds lie within what they may grow by, ``allowed`` per round.

    So what may not grow must stay the same. A fall is no rest: what rises and falls by chance falls just as often where
    it leaks as well. Fewer readings are never at rest.
    """
    if len(values) <= window:
        return False
    last = values[-1 - window :]
    return max(last) - min(last) <= allowed * window or repeats(last)


def repeats(values: Sequence[int]) -> bool:
    """Whether readings are the same three times over: what comes and goes by turns is at rest."""
    return any(
        all(before == after for before, after in zip(values, values[period:]))  # noqa: B905 - the rest has no partner
        for period in range(2, len(values) // 3 + 1)
    )


def is_steady(values: Sequence[int]) -> bool:
    """Whether each reading is above the one before by the same amount."""
    steps = {after - before for before, after in pairwise(values)}
    return len(steps) == 1 and min(steps) > 0


@dataclass(frozen=True, slots=True)
class UsualStep:
    """The median growth per round over all pairs of rounds, and its standard error.

    The steps in which containers grow leave it alone, and what grows in every other round grows in each pair.
    """

    per_round: float = 0.0
    error: float = 0.0


def usual_step(values: Sequence[int]) -> UsualStep:
    """Return the usual step of readings. The error is that of a median of normal numbers; pairs overlap by half."""
    steps = [(after - before) / 2 for before, after in zip(values, values[2:], strict=False)]
    if not steps:
        return UsualStep()
    middle = median(steps)
    deviation = NORMAL_DEVIATION * median(abs(step - middle) for step in steps)
    return UsualStep(middle, sqrt(pi / 2) * deviation / sqrt(len(steps) / 2))


def measured_from(values: Sequence[int]) -> int:
    """Return the position of the first reading whose growth is measured: behind the first third, where there is one."""
    return 0 if len(values) <= SHORT else len(values) // 3


def growth_per_round(values: Sequence[int]) -> float:
    """Return the median of the slopes between all pairs of readings behind the first third, which may be warm-up.

    The estimator is that of Theil (1950) and Sen (1968), which a few odd readings do not move.
    """
    return _slope(values[measured_from(values) :])


def _slope(values: Sequence[int]) -> float:
    slopes = [(b - a) / (later - earlier) for (earlier, a), (later, b) in combinations(enumerate(values), 2)]
    return median(slopes) if slopes else 0.0


def never_came_back(values: Sequence[int], allowed: float) -> bool:
    """Whether each reading of the last third is above each of the first, by more than ``allowed`` per round.

    A leak's readings are; those of a saw-tooth are not, however steep its teeth.
    """
    if len(values) <= SHORT:
        return len(values) > 2 and all(after - before > allowed for before, after in pairwise(values))
    third = len(values) // 3
    return min(values[-third:]) - max(values[:third]) > allowed * (len(values) - 2 * third)


def lows_rise(values: Sequence[int]) -> bool:
    """Whether the lowest reading of each third is above that of the third before, unlike those of a step or a wave."""
    third = len(values) // 3
    if not third:
        return False
    first, second, last = (min(values[start : start + third]) for start in (0, third, len(values) - third))
    return first < second < last


def fell(values: Sequence[int]) -> bool:
    """Whether a reading is below the one before, unlike those of a leak that nothing is beside."""
    return any(after < before for before, after in pairwise(values))


def rises_often(values: Sequence[int]) -> bool:
    """Whether at least three of eight steps rise, as half of them do where something is left every other round.

    What grows in place by a share of its size, as a list, seldom does, nor does a cache of many sizes that is filling.
    """
    return sum(after > before for before, after in pairwise(values)) * 8 >= 3 * (len(values) - 1)


def doubles(values: Sequence[int]) -> bool:
    """Whether all that rises rises by more than half, but for a rise from nothing, which tells nothing.

    So does a table, as of a dict or a set. What grows in place by a share of its size does not.
    """
    rises = [(before, after) for before, after in pairwise(values) if after > before > 0]
    return bool(rises) and all(2 * after > 3 * before for before, after in rises)


def keeps_pace(values: Sequence[int]) -> bool:
    """Whether the last third grows at least two thirds as fast as the first, unlike what fills by chance.

    A place that is taken already is met ever more often, so such growth slows all the time, and never quite ends.
    """
    third = len(values) // 3
    return _slope(values[len(values) - third :]) >= PACE_KEPT * _slope(values[:third])


def is_leak(values: Sequence[int], allowed: float) -> bool:
    """Whether readings say that a quantity grows by more than ``allowed`` per round, for good and to the end."""
    return lows_rise(values) and never_came_back(values, allowed) and growth_per_round(values) > allowed
