"""Peaks: how much more memory a round has in use at any time than at its start.

Python's memory is counted by tracemalloc, device memory from the log of the simulated runtime. Both need a round of
their own: traces slow it down, and what they take themselves would be counted by the rounds that look for growth.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Collection
from dataclasses import dataclass

from quiesce.leaks.judgement import Outcome
from quiesce.leaks.quantities import DEVICE, PYTHON
from quiesce.simulator.runtime import Ledger, OwnMachine, Seen, Thing

_MEMORY_OF_DEVICES = (Thing.DEVICE, Thing.PHYSICAL)


@dataclass(frozen=True, slots=True)
class Peaks:
    """What one round had in use at most, in bytes by gauge. ``unknown`` says why one that was asked for is missing."""

    bytes_by_gauge: dict[str, int]
    unknown: str = ""


def measure_peaks(run_round: Callable[[], Outcome], gauges: Collection[str], machine: OwnMachine | None) -> Peaks:
    """Run one round and return its peaks. ``machine`` is the simulated one; without it device memory has none."""
    found: dict[str, int] = {}
    was_tracing = tracemalloc.is_tracing()
    gc.collect()
    if PYTHON in gauges and not was_tracing:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()
        ledger = None if machine is None else machine.ledger()
        number = 0 if ledger is None else ledger.observations
        outcome = run_round()
        if PYTHON in gauges and tracemalloc.is_tracing():
            found[PYTHON] = max(0, tracemalloc.get_traced_memory()[1] - before)
    finally:
        if not was_tracing:
            tracemalloc.stop()
    if outcome is not Outcome.PASSED:
        return Peaks({}, "the peak of its memory is not known: the round that measures it did not pass")
    if PYTHON in gauges and PYTHON not in found:
        return Peaks(found, "the peak of Python's memory is not known: the test stops tracemalloc")
    if DEVICE in gauges and machine is not None:
        ledger = machine.ledger()
        peak = 0 if ledger is None else _device_peak(ledger, number)
        if peak is None:
            return Peaks(found, "the peak of device memory is not known: calls were overwritten; keep more with --ring")
        found[DEVICE] = peak
    return Peaks(found)


def _device_peak(ledger: Ledger, first: int) -> int | None:
    """Return by how much the memory of all devices rose at most since an observation; None where some are lost."""
    if ledger.lost > first:
        return None
    now = peak = 0
    for number in range(first, ledger.observations):
        record = ledger.record(number)
        if record.thing not in _MEMORY_OF_DEVICES:
            continue
        if record.seen is Seen.ALLOCATED:
            now += record.size_bytes
            peak = max(peak, now)
        elif record.seen is Seen.FREED:
            now -= record.size_bytes
    return peak
