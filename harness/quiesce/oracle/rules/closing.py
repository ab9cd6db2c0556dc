"""Rules of the end: what is left when the sequence has given everything back and the context is closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce.amounts import bytes_in_words
from quiesce.findings import Finding, Grade
from quiesce.gauges import Gauge, Readings, best_reading
from quiesce.oracle.model import Model
from quiesce.oracle.rule import found

NOTHING_LEFT: Final = "nothing_is_left_at_quiescence"
HANDLES_GONE: Final = "handles_are_destroyed_at_quiescence"
GAUGE: Final = "gauge_meets_expectation"
GROWTH: Final = "retained_does_not_grow"
COST: Final = "cost_per_iteration_stays_flat"
NAMES: Final = (NOTHING_LEFT, HANDLES_GONE, GAUGE, GROWTH, COST)

_MEMORY: Final = (Gauge.LIVE, Gauge.BLOCKS, Gauge.RESERVED, Gauge.PINNED, Gauge.NODES)
_HANDLES: Final = (Gauge.STREAMS, Gauge.EVENTS, Gauge.GRAPHS, Gauge.INSTANCES)


def judge_closing(model: Model, readings: Readings) -> Iterator[Finding]:
    """After quiescence, what nobody owns must be gone."""
    for name, gauges in ((NOTHING_LEFT, _MEMORY), (HANDLES_GONE, _HANDLES)):
        for gauge in gauges:
            left = best_reading(readings, gauge)
            if left:
                yield found(name, f"{gauge} of 0", f"{left:,}", grade=Grade.LIVE_LEAK)
    left_backing = sum(end - start for start, end, _ in model.memory.backing)
    if left_backing and not best_reading(readings, Gauge.RESERVED) and not best_reading(readings, Gauge.PINNED):
        yield found(
            NOTHING_LEFT,
            "every backing allocation released",
            f"{bytes_in_words(left_backing)} were not",
            grade=Grade.LIVE_LEAK,
        )
