"""What a plot stands on: its axis of calls, round numbers and their words, bytes that browsers can draw, few points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

BYTES_MAX: Final = 2**70
"""Beyond the exbibyte nobody measures; a driver that answers more is shown as this much."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bounded(size_bytes: int) -> int:
    """Return ``size_bytes`` between plus and minus :data:`BYTES_MAX`; a broken counter may be below 0."""
    return max(-BYTES_MAX, min(BYTES_MAX, size_bytes))


def format_bytes(size_bytes: int) -> str:
    """Return ``64 MiB``, ``1.5 GiB`` or ``-16 B``: at most two decimals, none where the number is round."""
    size = bounded(size_bytes)
    power = 0
    while power < len(_UNITS) - 1 and abs(size) >= 1024 ** (power + 1):
        power += 1
    number = f"{size / 1024**power:.2f}".rstrip("0").rstrip(".")
    return f"{number} {_UNITS[power]}"


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


BUCKETS_MAX: Final = 150
"""A longer series is divided into this many parts; of each part, the lowest and the highest value are kept."""


def extremes(values: Sequence[int | None]) -> Iterator[int]:
    """Yield the positions to keep, some twice and in no order.

    A part in which nobody read anything, which is None, stays a part in which nobody did.
    """
    width = -(-len(values) // BUCKETS_MAX)
    for start in range(0, len(values), width):
        bucket = range(start, min(start + width, len(values)))
        read = [(value, position) for position in bucket if (value := values[position]) is not None]
        yield from (min(read)[1], max(read)[1]) if read else (start,)


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of a scale, at so many percent of it."""

    percent: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """``count`` calls from the one with the number ``first`` on."""

    first: int
    count: int

    def part(self, number: int) -> float:
        """Return where a call lies, between 0 and 1: in the middle of its share of the axis."""
        place = (number - self.first + 0.5) / max(1, self.count)
        return min(1.0, max(0.0, place))

    def percent(self, number: int) -> float:
        """Return :meth:`part` in percent, with two decimals."""
        return round(100 * self.part(number), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """Return marks at round numbers."""
        last = self.first + self.count - 1
        lines = [line for line, _ in count_ticks([self.count])]
        step = lines[1] if len(lines) > 1 else 1
        start = -(-self.first // step) * step
        return tuple(Tick(self.percent(line), f"{line:,}") for line in range(start, last + 1, step))
