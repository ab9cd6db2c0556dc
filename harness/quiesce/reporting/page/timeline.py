"""The memory timeline behind a finding: live, reserved and pinned bytes over operations, thin enough to embed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quiesce.findings import Finding
from quiesce.reporting.page.excerpt import READINGS, read_gauges, shorten
from quiesce.reporting.page.sizes import bounded, format_bytes
from quiesce.results import Sample

BUCKETS_MAX: Final = 150
"""A longer timeline is divided into this many parts; of each part, the lowest and the highest of a gauge are kept."""
TICKS: Final = 5
"""About how many lines the scale of bytes has."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """``series`` maps a gauge that was read to its values over ``operations``, None where it was not.

    ``texts`` are the words for those that do not stand beside the timeline as text. ``offending`` are the operations
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
            "ticks": self.ticks,
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
        ticks=_ticks([value for _, values in series for value in values if value is not None]),
        offending=tuple(offending),
        closing=closing,
    )


def _text(sample: Sample) -> str:
    line = "" if sample.line is None else f" (line {sample.line})"
    return f"operation {sample.operation_index}{line}: {shorten(sample.request)} → {shorten(sample.outcome)}"


def _value(sample: Sample, gauge: str) -> int | None:
    value = READINGS[gauge](sample)
    return None if value is None else bounded(value)


def _thin(samples: Sequence[Sample], gauges: Iterable[str], wanted: set[int]) -> list[Sample]:
    width = -(-len(samples) // BUCKETS_MAX)
    positions = {0, len(samples) - 1}
    positions.update(index for index, sample in enumerate(samples) if sample.operation_index in wanted)
    for gauge in gauges:
        values = [_value(sample, gauge) for sample in samples]
        for start in range(0, len(samples), width):
            bucket = range(start, min(start + width, len(samples)))
            read = [(value, index) for index in bucket if (value := values[index]) is not None]
            # A part in which nobody read the gauge stays a part in which nobody did.
            positions.update((min(read)[1], max(read)[1]) if read else (start,))
    return [samples[position] for position in sorted(positions)]


def _ticks(values: Sequence[int]) -> tuple[tuple[int, str], ...]:
    """Return lines at round binary sizes from 0, or from below the lowest value, to above the highest."""
    low, high = min(0, *values, 0), max(0, *values, 0)
    step = 1
    while step * TICKS < high - low:
        step *= 2
    first, last = low // step, max(1, -(-high // step))
    return tuple((number * step, format_bytes(number * step)) for number in range(first, last + 1))
