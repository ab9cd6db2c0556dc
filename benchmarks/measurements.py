"""One measurement each: what an operation costs in counted steps and in time, bare, in lockstep, and over a pipe."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from churn import PROFILE, churn, fill

from quiesce.allocators.cases.expansion import PerformStep
from quiesce.allocators.lockstep import run_lockstep
from quiesce.model.backend import Backend, Context
from quiesce.model.gauges import Gauge, Source
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Allocated, Done

SLICES: Final = 5
"""A window is timed in so many slices, and the fastest counts: the others shared the machine with somebody."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one operation costs; ``steps`` are counted over the window, and None where the backend counts none."""

    microseconds: float
    steps: float | None = None


def bare_cost(backend: Backend, live: int, operations: int) -> Cost:
    """Measure a backend alone, with nobody who judges it."""
    context = backend.open(PROFILE)
    try:
        _perform(context, fill(live))
        slices = _slices(churn(live, operations))
        times = []
        before = context.readings().get((Gauge.COST, Source.LEDGER))
        with_collector = _pause_collector()
        for part in slices:
            start = time.perf_counter()
            _perform(context, part)
            times.append((time.perf_counter() - start) / len(part))
        _resume_collector(with_collector)
        after = context.readings().get((Gauge.COST, Source.LEDGER))
    finally:
        context.close()
    steps = None if before is None or after is None else (after - before) / sum(map(len, slices))
    return Cost(min(times) * 1e6, steps)


def lockstep_cost(backend: Backend, live: int, operations: int) -> Cost:
    """Measure a backend and the oracle beside it, in the same window of the same sequence.

    Raises :class:`RuntimeError` where something was found: then the window is not what it seems.
    """
    times: list[float] = []
    trial = run_lockstep(backend, PROFILE, _timed(live, operations, times))
    if trial.findings or trial.unsupported:
        raise RuntimeError(f"the sequence did not run through: {trial.findings or trial.unsupported}")
    return Cost(min(times) * 1e6)


def _timed(live: int, operations: int, times: list[float]) -> Iterator[PerformStep]:
    """Yield the steps; lockstep performs each before it asks for the next, so the clock stands around the slices."""
    yield from (PerformStep(operation, None, 0) for operation in fill(live))
    slices = [[PerformStep(operation, None, 0) for operation in part] for part in _slices(churn(live, operations))]
    with_collector = _pause_collector()
    for part in slices:
        start = time.perf_counter()
        yield from part
        times.append((time.perf_counter() - start) / len(part))
    _resume_collector(with_collector)


def _slices(operations: Iterable[Operation]) -> list[list[Operation]]:
    window = list(operations)
    length = -(-len(window) // SLICES)
    return [window[start : start + length] for start in range(0, len(window), length)]


def _perform(context: Context, operations: Iterable[Operation]) -> None:
    for operation in operations:
        outcome = context.perform(operation).outcome
        if not isinstance(outcome, Allocated | Done):
            raise RuntimeError(f"{operation}: {outcome}")


def _pause_collector() -> bool:
    """Stop Python's garbage collector, whose passes cost as much as lives and would be counted as the operation's."""
    with_collector = gc.isenabled()
    gc.collect()
    gc.disable()
    return with_collector


def _resume_collector(with_collector: bool) -> None:
    if with_collector:
        gc.enable()
