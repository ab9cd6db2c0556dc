"""Rules of the end: what must be gone at ``finalize``, at ``collect`` and once the context is closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.memory import held_in_words
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.rule import Rule, found
from quiesce.model import operations as ops
from quiesce.model.backend import Promise
from quiesce.model.findings import Finding, Grade
from quiesce.model.gauges import Gauge, Readings, best_reading
from quiesce.model.outcomes import Done
from quiesce.model.rules import Kind
from quiesce.model.wording import counted

NOTHING_LEFT: Final = "nothing_is_left_at_quiescence"
HANDLES_GONE: Final = "handles_are_destroyed_at_quiescence"
GAUGE: Final = "gauge_meets_expectation"
GROWTH: Final = "retained_does_not_grow"
COST: Final = "cost_per_iteration_stays_flat"
NAMES: Final = (NOTHING_LEFT, HANDLES_GONE, GAUGE, GROWTH, COST)

_MEMORY: Final = (Gauge.LIVE, Gauge.BLOCKS, Gauge.RESERVED, Gauge.PINNED, Gauge.NODES)
_HELD: Final = (Gauge.RESERVED, Gauge.PINNED)
HANDLES: Final = (Gauge.STREAMS, Gauge.EVENTS, Gauge.GRAPHS, Gauge.INSTANCES)
"""The gauges that count handles."""


def judge_closing(model: Model, readings: Readings, *, in_flight: bool) -> Iterator[Finding]:
    """After quiescence, what nobody owns must be gone.

    A context that was closed ``in_flight`` has released its memory. Its counts of things that the sequence
    still owned are not judged.
    """
    memory, handles = (NOTHING_LEFT, Kind.MEMORY_LEAK), (HANDLES_GONE, Kind.HANDLE_LEAK)
    judged = ((memory, _HELD),) if in_flight else ((memory, _MEMORY), (handles, HANDLES))
    for (name, kind), gauges in judged:
        for gauge in gauges:
            left = best_reading(readings, gauge)
            if left:
                yield Finding(name, f"{gauge} of 0", f"{left:,}", kind=kind, grade=Grade.LIVE_LEAK)
    left_backing = _left_backing(model)
    if left_backing and not best_reading(readings, Gauge.RESERVED) and not best_reading(readings, Gauge.PINNED):
        yield Finding(
            NOTHING_LEFT,
            "every backing allocation released",
            f"not released: {held_in_words([held for _, _, held in model.memory.backing])}",
            kind=Kind.MEMORY_LEAK,
            grade=Grade.LIVE_LEAK,
        )


def left_bytes(model: Model, readings: Readings) -> int:
    """Return how much memory is held after a context was closed, by whoever tells of the most."""
    return max(_left_backing(model), sum(best_reading(readings, gauge) or 0 for gauge in _HELD))


def _left_backing(model: Model) -> int:
    return sum(end - start for start, end, _ in model.memory.backing)


def finalized_runtime_owns_nothing(model: Model, change: Change) -> Iterator[Finding]:
    """After ``finalize``, the only instances left are those that the sequence still owns."""
    if not isinstance(change.operation, ops.Finalize) or not isinstance(change.outcome, Done):
        return
    kept = best_reading(change.after, Gauge.INSTANCES)
    owned = len(model.runtime.instances)
    if kept is not None and kept > owned:
        yield found(counted(owned, "instance"), counted(kept, "instance"), grade=Grade.LIVE_LEAK)


def unreachable_nodes_are_collected(model: Model, change: Change) -> Iterator[Finding]:
    """After ``collect``, the tape keeps no node that nobody can reach."""
    if not isinstance(change.operation, ops.Collect):
        return
    kept = best_reading(change.after, Gauge.NODES)
    if kept is None:
        return
    reachable = model.tape.reachable()
    if kept > reachable:
        yield found(f"at most {counted(reachable, 'node')}", counted(kept, "node"), grade=Grade.LIVE_LEAK)


RULES: Final = (
    Rule(
        "A finalized runtime holds only the instances that the sequence made.",
        Kind.HANDLE_LEAK,
        finalized_runtime_owns_nothing,
        (ops.Finalize,),
    ),
    Rule(
        "A tape frees the nodes that nobody can reach.",
        Kind.MEMORY_LEAK,
        unreachable_nodes_are_collected,
        (ops.Collect,),
        promise=Promise.COLLECTS_AT_ONCE,
    ),
)
