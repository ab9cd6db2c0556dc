"""The lines of a scale: round numbers and the words for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.reporting.page.sizes import format_bytes

TICKS: Final = 5
"""About how many lines a scale has."""


def byte_ticks(values: Sequence[int]) -> tuple[tuple[int, str], ...]:
    """Return lines at round binary sizes from 0, or from below the lowest value, to above the highest."""
    step = 1
    while step * TICKS < _span(values):
        step *= 2
    return tuple((line, format_bytes(line)) for line in _lines(values, step))


def count_ticks(values: Sequence[int]) -> tuple[tuple[int, str], ...]:
    """Return lines at 1, 2 or 5 times a power of ten, likewise."""
    power = 1
    while power * 10 * TICKS < _span(values):
        power *= 10
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * TICKS >= _span(values))
    return tuple((line, f"{line:,}") for line in _lines(values, step))


def _span(values: Sequence[int]) -> int:
    return max(0, *values, 0) - min(0, *values, 0)


def _lines(values: Sequence[int], step: int) -> list[int]:
    low, high = min(0, *values, 0), max(0, *values, 0)
    return [number * step for number in range(low // step, max(1, -(-high // step)) + 1)]
