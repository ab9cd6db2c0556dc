"""Growth over iterations: a slope that one-off warm-up, a bounded saw-tooth and bounded noise do not tilt."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from statistics import median
from typing import Final

_POINTS_MAX: Final = 64
_WINDOWS: Final = 4
_LEAPS: Final = Fraction(1, 8)


def slope(values: Sequence[int]) -> Fraction:
    """Return the median of the slopes between all pairs of points (Theil 1950, Sen 1968), per iteration.

    ``values`` holds one reading for each iteration; long runs are thinned evenly. Fewer than two points have slope 0.
    """
    step = max(1, -(-len(values) // _POINTS_MAX))
    points = [(index, values[index]) for index in range(0, len(values), step)]
    if len({value for _, value in points}) < 2:
        return Fraction(0)
    slopes = [Fraction(b[1] - a[1], b[0] - a[0]) for a, b in combinations(points, 2)]
    return Fraction(median(slopes))


def grows_as_expected(values: Sequence[int], per_iteration: int, *, cumulative: bool) -> bool:
    """Whether readings grow by ``per_iteration``: over the whole window they are off by less than one unit.

    What is off has to show all the way, in the lowest readings as in the highest: a backlog that fills and empties
    is no growth. Where nothing may grow, nothing need stay either. A ``cumulative`` gauge is judged on what each
    iteration adds; counted work may wander by a twentieth of that, and leap now and then, as where a table doubles.
    """
    if cumulative:
        values = [after - before for before, after in pairwise(values)]
    if len(values) < 2:
        return True
    allowed = Fraction(1)
    if cumulative:
        allowed = max(allowed, Fraction(median(values)) / 20)
    off = (slope(values) - per_iteration) * (len(values) - 1)
    if abs(off) < allowed or (off < 0 and per_iteration == 0):
        return True
    rest = [value - per_iteration * index for index, value in enumerate(values)]
    return not _rises_throughout(rest if off > 0 else [-value for value in rest], leaps=_LEAPS if cumulative else 0)


def _rises_throughout(values: Sequence[int], leaps: Fraction | int) -> bool:
    """Whether both the lowest and the highest readings rise from each quarter to the next.

    ``leaps`` is the part of each quarter's readings that may leap up beyond what counts as its highest.
    """
    count = min(_WINDOWS, len(values))
    windows = [values[len(values) * k // count : len(values) * (k + 1) // count] for k in range(count)]
    lowest = [min(window) for window in windows]
    highest = [sorted(window)[-1 - int(len(window) * leaps)] for window in windows]
    return all(a < b for a, b in pairwise(lowest)) and all(a < b for a, b in pairwise(highest))
