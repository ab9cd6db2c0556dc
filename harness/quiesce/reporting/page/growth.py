"""The plot of a leak: what a gauge read behind each round, thin enough to embed, and how fast it grows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from quiesce.amounts import bytes_in_words, singular
from quiesce.findings import RoundReadings
from quiesce.reporting.names import shorten_middle
from quiesce.reporting.page.scale import byte_ticks, count_ticks
from quiesce.reporting.page.sizes import bounded
from quiesce.reporting.page.thinning import extremes
from quiesce.reporting.text import clean_line, rate

NAME_LENGTH_MAX: Final = 40
UNIT_LENGTH_MAX: Final = 20
"""Characters of a gauge's name and of its unit that a plot shows; a test may name its own."""


@dataclass(frozen=True, slots=True)
class GrowthPlot:
    """``grown`` are a gauge's readings behind ``rounds``, as much as they are above the first of them, in ``unit``.

    ``slope`` are the ends of the line of growth, each a round and an amount; ``rate`` says how steep it is. ``ticks``
    are the lines of the scale: amounts, and the words for them.
    """

    gauge: str
    rounds: tuple[int, ...]
    grown: tuple[int, ...]
    unit: str
    slope: tuple[tuple[int, float], tuple[int, float]]
    rate: str
    ticks: tuple[tuple[int, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return what the page's script reads."""
        return {
            "gauge": self.gauge,
            "grown": self.grown,
            "rate": self.rate,
            "rounds": self.rounds,
            "slope": self.slope,
            "ticks": self.ticks,
            "unit": self.unit,
        }


def make_growth_plot(readings: RoundReadings) -> GrowthPlot:
    """Return the plot. The line has the growth that was measured, and as many readings above it as below."""
    grown = [bounded(value) for value in readings.grown]
    kept = sorted({0, len(grown) - 1, *extremes(grown)})
    first = max(0, min(readings.measured_from - readings.first_round, len(grown) - 1))
    height = median(grown[index] - readings.per_round * index for index in range(first, len(grown)))
    unit = shorten_middle(clean_line(readings.unit), UNIT_LENGTH_MAX)
    ends = (first, len(grown) - 1)
    ticks = byte_ticks if readings.unit == "bytes" else count_ticks
    return GrowthPlot(
        gauge=shorten_middle(clean_line(readings.gauge), NAME_LENGTH_MAX),
        rounds=tuple(readings.first_round + index for index in kept),
        grown=tuple(grown[index] for index in kept),
        unit=unit,
        slope=(_point(readings, height, ends[0]), _point(readings, height, ends[1])),
        rate=rate(replace(readings, unit=unit)),
        ticks=ticks([grown[index] for index in kept]),
    )


def _point(readings: RoundReadings, height: float, index: int) -> tuple[int, float]:
    return readings.first_round + index, round(height + readings.per_round * index, 3)


def growth_words(readings: RoundReadings) -> str:
    """Return what the plot shows, in words that say as much without it."""
    last = readings.first_round + len(readings.grown) - 1
    return (
        f"{clean_line(readings.gauge)}: {_amount(readings)} more after round {last} than after round "
        f"{readings.first_round}. The growth of {_rate(readings)} was measured over rounds {readings.measured_from} "
        f"to {last}."
    )


def _amount(readings: RoundReadings) -> str:
    last = readings.grown[-1]
    if readings.unit == "bytes":
        return bytes_in_words(bounded(last))
    unit = clean_line(readings.unit)
    return f"{bounded(last):,} {singular(unit) if last == 1 else unit}"


def _rate(readings: RoundReadings) -> str:
    if readings.unit == "bytes" and abs(readings.per_round) >= 1024:
        return f"{bytes_in_words(bounded(round(readings.per_round)))} per round"
    return rate(readings)
