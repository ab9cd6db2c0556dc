"""Which outcomes a request may have, given what is known. A permitted set, not a prediction.

The reference is just another backend here. What upstream leaves undefined (work on a destroyed stream) permits
every answer; what is documented permits exactly the documented ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quiesce import operations as ops
from quiesce.operations import Operation, Slot
from quiesce.oracle import permits_memory, permits_order
from quiesce.oracle.facts import RUNTIME
from quiesce.oracle.model import Model
from quiesce.oracle.permitted import ANY, ANYTHING, MEMORY, SUCCESS, Permitted

_PERMITS: Final = {**permits_memory.PERMITS, **permits_order.PERMITS}
"""What is not among them is served whenever it is asked for."""

_CALLS_NOTHING_BELOW: Final = (
    ops.QueryStream,
    ops.QueryEvent,
    ops.Stall,
    ops.Release,
    ops.SelectDevice,
    ops.Mark,
    ops.InjectFailure,
)

_MAY_NEED_MEMORY: Final = (
    ops.CreateStream,
    ops.CreateEvent,
    ops.CreateInstance,
    ops.Partition,
    ops.CreatePolicy,
    ops.Initialize,
    ops.BeginCapture,
    ops.EndCapture,
    ops.RecordEvent,
    ops.WaitEvent,
    ops.Stall,
    ops.LaunchGraph,
    ops.Launch,
    ops.Copy,
    ops.Fill,
    ops.Node,
    ops.Backward,
)
"""A runtime may take memory of its own for what it makes, runs and puts on a stream: scratch (Kokkos), a graph, a
marker (``CL_OUT_OF_HOST_MEMORY`` of ``clEnqueueMarkerWithWaitList``), or a block itself, which OpenCL may provide when
a command first uses it (``CL_MEM_OBJECT_ALLOCATION_FAILURE`` of ``clEnqueueFillBuffer``)."""

_NAMES_IN_SLOT: Final = (
    ops.DestroyPool,
    ops.DestroyStream,
    ops.SynchronizeStream,
    ops.QueryStream,
    ops.Stall,
    ops.Release,
    ops.DestroyEvent,
    ops.RecordEvent,
    ops.WaitEvent,
    ops.QueryEvent,
    ops.SynchronizeEvent,
    ops.LaunchGraph,
    ops.DestroyGraph,
    ops.DestroyInstance,
)
_NAMES_THE_RUNTIME: Final = (
    ops.Initialize,
    ops.Finalize,
    ops.CreateInstance,
    ops.Partition,
    ops.CreatePolicy,
)


def permits(model: Model, operation: Operation) -> Permitted:
    """Return the permitted outcomes of ``operation``, before it is applied."""
    if model.doubtful and not model.doubtful.isdisjoint(_named(operation)):
        return ANYTHING
    permit = _PERMITS.get(type(operation))
    permitted = SUCCESS if permit is None else permit(model, operation)
    if model.kinds_used and isinstance(operation, _MAY_NEED_MEMORY):
        # The sequence may have left too little, which may come out before what else is wrong with the request.
        permitted = MEMORY if permitted is SUCCESS else replace(permitted, out_of_memory=True)
    if not model.failures or not permitted.success or isinstance(operation, _CALLS_NOTHING_BELOW):
        return permitted
    # The armed failure may be met: out of memory, or an error in the backend's own words.
    return replace(permitted, out_of_memory=True, codes=permitted.codes | {ANY})


def _named(operation: Operation) -> tuple[Slot | None, ...]:
    """Return the things but blocks that a request names, and is refused for where they are gone."""
    named: list[Slot | None] = [getattr(operation, name, None) for name in ("stream", "pool", "instance")]
    if isinstance(operation, _NAMES_IN_SLOT):
        named.append(operation.slot)
    if isinstance(operation, _NAMES_THE_RUNTIME):
        named.append(RUNTIME)
    return tuple(named)
