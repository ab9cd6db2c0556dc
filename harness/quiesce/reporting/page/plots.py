"""The plots of case pages, thin enough to embed: memory over operations, and a gauge after each round of a leak."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from quiesce.model.findings import Finding, RoundReadings
from quiesce.model.results import Sample
from quiesce.model.wording import bytes_in_words, singular
from quiesce.reporting.page.excerpt import READINGS, read_gauges, shorten
from quiesce.reporting.page.picture import WIDTH, Band, Curve, Heights, Marker, Picture, area, column, steps
from quiesce.reporting.page.scale import Axis, bounded, byte_ticks, count_ticks, extremes, format_bytes
from quiesce.reporting.result_lists import shorten_middle
from quiesce.reporting.text import clean_line, rate


@dataclass(frozen=True, slots=True)
class Timeline:
    """``series`` maps a gauge that was read to its values over ``operations``, None where it was not.

    ``texts`` are the words for those that do not stand next to the timeline as text. ``offending`` are the operations
    that broke a rule; ``closing`` is where the sequence was closed if that is where something was found. ``ticks`` are
    the lines of the scale: bytes, and the words for them.
    """

    operations: tuple[int, ...]
    texts: tuple[tuple[int, str], ...]
    series: tuple[tuple[str, tuple[int | None, ...]], ...]
    ticks: tuple[tuple[int, str], ...]
    offending: tuple[int, ...]
    closing: int | None

    def as_json(self) -> dict[str, Any]:
        """Return what the page's script reads."""
        return {
            "closing": self.closing,
            "offending": self.offending,
            "operations": self.operations,
            "series": [{"gauge": gauge, "values": values} for gauge, values in self.series],
            "texts": dict(self.texts),
        }


def make_timeline(samples: Sequence[Sample], findings: Sequence[Finding], listed: Iterable[int]) -> Timeline | None:
    """Return the timeline, or None where no gauge was read.

    ``listed`` are the operations that stand beside it as text; they are kept, so that each can be pointed at.
    """
    gauges = read_gauges(samples)
    if not gauges:
        return None
    offending = sorted({finding.operation_index for finding in findings if finding.operation_index is not None})
    beside = set(listed)
    kept = _thin(samples, gauges, {*beside, *offending})
    series = tuple((gauge, tuple(_value(sample, gauge) for sample in kept)) for gauge in gauges)
    closing = samples[-1].operation_index + 1 if any(each.operation_index is None for each in findings) else None
    return Timeline(
        operations=tuple(sample.operation_index for sample in kept),
        texts=tuple((each.operation_index, _text(each)) for each in kept if each.operation_index not in beside),
        series=series,
        ticks=byte_ticks([value for _, values in series for value in values if value is not None]),
        offending=tuple(offending),
        closing=closing,
    )


def draw_timeline(timeline: Timeline) -> Picture:
    """Return its picture: each gauge holds its value until the next operation; what broke a rule is marked."""
    marks = {index: f"operation {index}" for index in timeline.offending}
    if timeline.closing is not None:
        marks[timeline.closing] = "closing"
    first, last = (bounded(end(timeline.operations[0], timeline.operations[-1], *marks)) for end in (min, max))
    axis = Axis(first, last - first + 1)
    scale = Heights(timeline.ticks)
    columns = [column(axis, bounded(index)) for index in timeline.operations]
    end = WIDTH if timeline.closing is None else column(axis, bounded(timeline.closing))
    words = f"Bytes after each operation: {', '.join(gauge for gauge, _ in timeline.series)}."
    broken = f" Marked: {', '.join(list(marks.values())[:LABELLED_MAX])}." if marks else ""
    return Picture(
        sentence=words + broken,
        curves=tuple(_gauge_curve(gauge, values, columns, scale, end) for gauge, values in timeline.series),
        x_name="operation",
        axis=axis,
        y_ticks=scale.y_ticks(),
        marks=tuple(
            Marker(axis.percent(bounded(index)), f"✗ {text}" if number < LABELLED_MAX else "", f"{text} broke a rule")
            for number, (index, text) in enumerate(marks.items())
        ),
    )


def _gauge_curve(gauge: str, values: Sequence[int | None], columns: Sequence[int], scale: Heights, end: int) -> Curve:
    heights = [None if value is None else scale.unit(value) for value in values]
    read = [value for value in values if value is not None]
    title = f"{gauge}: at most {format_bytes(max(read))}, in the end {format_bytes(read[-1])}"
    below = area(columns, [scale.unit(0)] * len(columns), heights, end) if gauge == FILLED else ""
    return Curve(gauge, gauge, title, line=steps(columns, heights, end), area=below)


def _text(sample: Sample) -> str:
    line = "" if sample.line is None else f" (line {sample.line})"
    return f"operation {sample.operation_index}{line}: {shorten(sample.request)} → {shorten(sample.outcome)}"


def _value(sample: Sample, gauge: str) -> int | None:
    value = READINGS[gauge](sample)
    return None if value is None else bounded(value)


def _thin(samples: Sequence[Sample], gauges: Iterable[str], wanted: set[int]) -> list[Sample]:
    positions = {0, len(samples) - 1}
    positions.update(index for index, sample in enumerate(samples) if sample.operation_index in wanted)
    for gauge in gauges:
        positions.update(extremes([_value(sample, gauge) for sample in samples]))
    return [samples[position] for position in sorted(positions)]


FILLED: Final = "live"
"""The gauge whose area is filled."""
LABELLED_MAX: Final = 6
"""So many marks have their words next to them; all say them where they are pointed at."""
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
        return {"gauge": self.gauge, "grown": self.grown, "rounds": self.rounds, "unit": self.unit}


def make_growth_plot(readings: RoundReadings) -> GrowthPlot:
    """Return the plot. The line has the growth that was measured, and as many readings above it as below."""
    grown = [bounded(value) for value in readings.grown]
    kept = sorted({0, len(grown) - 1, *extremes(grown)})
    numbers = readings.numbers
    first = next((index for index, number in enumerate(numbers) if number >= readings.measured_from), len(grown) - 1)
    height = median(
        grown[index] - readings.per_round * (numbers[index] - numbers[0]) for index in range(first, len(grown))
    )
    unit = shorten_middle(clean_line(readings.unit), UNIT_LENGTH_MAX)
    ends = (first, len(grown) - 1)
    ticks = byte_ticks if readings.unit == "bytes" else count_ticks
    return GrowthPlot(
        gauge=shorten_middle(clean_line(readings.gauge), NAME_LENGTH_MAX),
        rounds=tuple(numbers[index] for index in kept),
        grown=tuple(grown[index] for index in kept),
        unit=unit,
        slope=(_point(readings, height, ends[0]), _point(readings, height, ends[1])),
        rate=rate(replace(readings, unit=unit)),
        ticks=ticks([grown[index] for index in kept]),
    )


def _point(readings: RoundReadings, height: float, index: int) -> tuple[int, float]:
    number = readings.numbers[index]
    return number, round(height + readings.per_round * (number - readings.numbers[0]), 3)


def draw_growth(plot: GrowthPlot) -> Picture:
    """Return its picture: the readings as steps, the rounds over which growth was measured, and how steep it is."""
    first, last = plot.rounds[0], plot.rounds[-1]
    axis = Axis(first, last - first + 1)
    scale = Heights(plot.ticks)
    columns = [column(axis, number) for number in plot.rounds]
    heights = [scale.unit(value) for value in plot.grown]
    (start, low), (end, high) = plot.slope
    slope = f"M{column(axis, start)} {scale.unit(low)}L{column(axis, end)} {scale.unit(high)}"
    measured = f"rounds {start} to {end}"
    left, right = axis.percent(start), axis.percent(end)
    return Picture(
        sentence=f"{plot.gauge} after each round, as much as it is above round {first}; {plot.rate} over {measured}.",
        curves=(
            Curve(
                plot.gauge,
                "grown",
                f"{plot.gauge} after each round",
                line=steps(columns, heights),
                area=area(columns, [scale.unit(0)] * len(columns), heights),
            ),
            Curve(plot.rate, "slope", f"{plot.rate}, measured over {measured}", line=slope),
        ),
        x_name="round",
        axis=axis,
        y_name=f"{'' if plot.unit == 'bytes' else f'{plot.unit} '}more than after round {first}",
        y_ticks=scale.y_ticks(),
        bands=(Band(left, round(right - left, 2), measured),),
    )


def growth_words(readings: RoundReadings) -> str:
    """Return what the plot shows, in words that say as much without it."""
    last = readings.numbers[-1]
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
