"""Growth over iterations: a slope that one-off warm-up and a bounded saw-tooth do not tilt."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from statistics import median
from typing import Final

_POINTS_MAX: Final = 64


def slope(values: Sequence[int]) -> Fraction:
    """Return the median of the slopes between all pairs of points (Theil 1950, Sen 1968), per iteration.

    ``values`` holds one reading for each iteration; long runs are thinned evenly. Fewer than two points have slope 0.
    """
    step = max(1, -(-len(values) // _POINTS_MAX))
    points = [(index, values[index]) for index in range(0, len(values), step)]
    slopes = [Fraction(b[1] - a[1], b[0] - a[0]) for a, b in combinations(points, 2)]
    return Fraction(median(slopes)) if slopes else Fraction(0)


def grows_as_expected(values: Sequence[int], per_iteration: int, *, cumulative: bool) -> bool:
    """Whether readings grow by ``per_iteration``: over the whole window they are off by less than one unit.

    A ``cumulative`` gauge is judged on what each iteration adds; counted work may wander by a twentieth of that.
    """
    if cumulative:
        values = [after - before for before, after in pairwise(values)]
    if len(values) < 2:
        return True
    allowed = Fraction(1)
    if cumulative:
        allowed = max(allowed, Fraction(median(values)) / 20)
    return abs(slope(values) - per_iteration) * (len(values) - 1) < allowed
