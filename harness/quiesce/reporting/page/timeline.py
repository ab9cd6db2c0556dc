"""The memory timeline behind a finding: live, reserved and pinned bytes over operations, thin enough to embed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from quiesce.findings import Finding
from quiesce.reporting.page.excerpt import READINGS, read_gauges, shorten
from quiesce.reporting.page.scale import byte_ticks
from quiesce.reporting.page.sizes import bounded
from quiesce.reporting.page.thinning import extremes
from quiesce.results import Sample


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
        ticks=byte_ticks([value for _, values in series for value in values if value is not None]),
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
    positions = {0, len(samples) - 1}
    positions.update(index for index, sample in enumerate(samples) if sample.operation_index in wanted)
    for gauge in gauges:
        positions.update(extremes([_value(sample, gauge) for sample in samples]))
    return [samples[position] for position in sorted(positions)]
