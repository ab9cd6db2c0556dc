"""Rules of runtimes and tapes: what must be gone at ``finalize`` and at ``collect``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce import operations as ops
from quiesce.amounts import counted
from quiesce.backend import Promise
from quiesce.findings import Finding, Grade
from quiesce.gauges import Gauge, best_reading
from quiesce.kinds import Kind
from quiesce.oracle.change import Change
from quiesce.oracle.model import Model
from quiesce.oracle.rule import Rule, found
from quiesce.outcomes import Done


def finalized_runtime_owns_nothing(model: Model, change: Change) -> Iterator[Finding]:
    """After ``finalize``, the only instances left are those that the sequence still owns."""
    if not isinstance(change.operation, ops.Finalize) or not isinstance(change.outcome, Done):
        return
    kept = best_reading(change.after, Gauge.INSTANCES)
    owned = len(model.instances)
    if kept is not None and kept > owned:
        yield found(
            "finalized_runtime_owns_nothing",
            counted(owned, "instance"),
            counted(kept, "instance"),
            grade=Grade.LIVE_LEAK,
        )


def unreachable_nodes_are_collected(model: Model, change: Change) -> Iterator[Finding]:
    """After ``collect``, the tape keeps no node that nobody can reach."""
    if not isinstance(change.operation, ops.Collect) or not model.promises(Promise.COLLECTS_AT_ONCE):
        return
    kept = best_reading(change.after, Gauge.NODES)
    if kept is None:
        return
    reachable = model.tape.reachable()
    if kept > reachable:
        yield found(
            "unreachable_nodes_are_collected",
            f"at most {counted(reachable, 'node')}",
            counted(kept, "node"),
            grade=Grade.LIVE_LEAK,
        )


RULES: Final = (
    Rule(
        "finalized_runtime_owns_nothing",
        "A finalized runtime holds only the instances that the sequence made.",
        Kind.HANDLE_LEAK,
        finalized_runtime_owns_nothing,
        (ops.Finalize,),
    ),
    Rule(
        "unreachable_nodes_are_collected",
        "A tape frees the nodes that nobody can reach.",
        Kind.MEMORY_LEAK,
        unreachable_nodes_are_collected,
        (ops.Collect,),
    ),
)
