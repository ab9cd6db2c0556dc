"""What readings say: whether a quantity has come to rest, and whether its growth is a leak."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import median
from typing import Final

SHORT: Final = 6
"""Up to this many readings every step counts; above, the first third of them is compared with the last."""


def at_rest(values: Sequence[int], window: int, allowed: int, *, exact: bool) -> bool:
    """Whether over the last ``window`` rounds the quantity grew by no more than ``allowed`` per round.

    A leak of a constant amount per round is never at rest, however long its warm-up; a cache that is full, a pool at
    its size and a buffer that has just been flushed are. Readings that are not ``exact`` also fall by chance, so there
    each round is looked at: at most a quarter of them may grow by more. Fewer readings are never at rest.
    """
    if len(values) <= window:
        return False
    last = values[-1 - window :]
    if exact:
        return last[-1] - last[0] <= allowed * window
    return sum(after - before > allowed for before, after in pairwise(last)) * 4 <= window


def growth_per_round(values: Sequence[int]) -> float:
    """Return the median of the slopes between all pairs of readings behind the first third, which may be warm-up.

    The estimator is that of Theil (1950) and Sen (1968), which a few odd readings do not move.
    """
    first = 0 if len(values) <= SHORT else len(values) // 3
    points = list(enumerate(values))[first:]
    slopes = [(b - a) / (later - earlier) for (earlier, a), (later, b) in combinations(points, 2)]
    return median(slopes) if slopes else 0.0


def never_came_back(values: Sequence[int], allowed: int) -> bool:
    """Whether each reading of the last third is above each of the first, by more than ``allowed`` per round.

    A leak's readings are; those of a saw-tooth are not, however steep its teeth.
    """
    if len(values) <= SHORT:
        return len(values) > 2 and all(after - before > allowed for before, after in pairwise(values))
    third = len(values) // 3
    return min(values[-third:]) - max(values[:third]) > allowed * (len(values) - 2 * third)


def only_rises(values: Sequence[int], allowed: int) -> bool:
    """Whether no step falls, and three of four rise by more than ``allowed``: what inexact readings of a leak do."""
    steps = [after - before for before, after in pairwise(values)]
    return bool(steps) and min(steps) >= -allowed and sum(step > allowed for step in steps) * 4 >= len(steps) * 3
