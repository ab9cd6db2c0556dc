"""Which outcomes a request may have, given what is known. A permitted set, not a prediction.

What upstream leaves undefined (work on a destroyed stream) permits every answer; what is documented permits exactly the
documented ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from quiesce.allocators.oracle.clocks import StreamState
from quiesce.allocators.oracle.memory import ON_THE_DEVICE
from quiesce.allocators.oracle.model import Model
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Flavour, Initialization, Promise
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    INVALID_VALUE,
    NOT_READY,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
)

ANY: Final = "*"
_SERVED: Final = (Done, Allocated)


@dataclass(frozen=True, slots=True)
class Permitted:
    """What may be answered: success, out of memory, rejections by code (``*``: any code), or anything at all."""

    success: bool = True
    out_of_memory: bool = False
    codes: frozenset[str] = frozenset()
    anything: bool = False

    def permits(self, outcome: Outcome) -> bool:
        """Whether the outcome is among them."""
        if self.anything:
            return True
        if isinstance(outcome, _SERVED):
            return self.success
        if isinstance(outcome, OutOfMemory):
            return self.out_of_memory
        if isinstance(outcome, Rejected):
            return ANY in self.codes or outcome.code in self.codes
        return True

    def __str__(self) -> str:
        if self.anything:
            return "any answer"
        words = ["success"] if self.success else []
        words += ["out of memory"] if self.out_of_memory else []
        words += ["a rejection" if code == ANY else f"rejected {code}" for code in sorted(self.codes)]
        return " or ".join(words)


SUCCESS: Final = Permitted()
ANYTHING: Final = Permitted(anything=True)
REFUSED: Final = Permitted(success=False, codes=frozenset({ANY}))
MEMORY: Final = Permitted(out_of_memory=True)
ANSWERED: Final = Permitted(codes=frozenset({NOT_READY}))


def only(*codes: str) -> Permitted:
    """Return the set of rejections with one of ``codes``."""
    return Permitted(success=False, codes=frozenset(codes))


Permit: TypeAlias = Callable[[Model, Any], Permitted]  # each takes the one operation type it is filed under


def enqueue(model: Model, stream: StreamState | None) -> Permitted:
    """Return what putting work on a stream may answer; None is a stream that was destroyed."""
    if stream is None:
        return ANYTHING  # work on a destroyed stream is undefined
    if not model.captures.any_active:
        return SUCCESS
    capture = model.captures.of(stream)
    invalidated = frozenset({CAPTURE_INVALIDATED}) if capture is not None and capture.invalid else frozenset()
    if stream.name == "" and model.captures.involves_blocking_stream(stream.device):
        # A default stream that waits for no other, such as CUDA's per-thread one, may go on, or have joined.
        legacy = model.can(Capability.LEGACY_DEFAULT_STREAM)
        return Permitted(success=not legacy, codes=invalidated | {CAPTURE_IMPLICIT})
    return Permitted(codes=invalidated) if invalidated else SUCCESS


def on_stream(model: Model, stream: Slot | None, permitted: Permitted) -> Permitted:
    """Return ``permitted`` where work may be put on a stream, else what that answers, or why it is refused anyway."""
    verdict = enqueue(model, model.stream(stream))
    if verdict.anything:
        return verdict
    if not verdict.success:
        return replace(verdict, codes=verdict.codes | permitted.codes)
    return replace(permitted, codes=permitted.codes | verdict.codes) if verdict.codes else permitted


def while_capturing(model: Model, permitted: Permitted) -> Permitted:
    """Return what a call may answer that a capture may forbid."""
    if not model.captures.forbids_unsafe_calls:
        return permitted
    return Permitted(permitted.success, permitted.out_of_memory, permitted.codes | {CAPTURE_UNSUPPORTED})


def beside_captures(model: Model) -> Permitted:
    """Return what a call may answer that synchronises, or may do so, and does not name a capture."""
    return Permitted(codes=frozenset({CAPTURE_UNSUPPORTED})) if model.captures.any_active else SUCCESS


def _destroy_stream(model: Model, operation: ops.DestroyStream) -> Permitted:
    state = model.streams.get(operation.slot)
    if state is None:
        return REFUSED
    if model.captures.of(state) is not None:
        return ANYTHING
    # HIP wants the events on it settled first, which may be forbidden beside a capture.
    return beside_captures(model) if model.profile.flavour is Flavour.HIP else SUCCESS


def _stall(model: Model, operation: ops.Stall) -> Permitted:
    state = model.streams.get(operation.slot)
    if state is None:
        return REFUSED
    # What holds a stream is put on it: a capture takes it in, or refuses it.
    return SUCCESS if model.captures.of(state) is None else Permitted(codes=frozenset({ANY}))


def _release(model: Model, operation: ops.Release) -> Permitted:
    return SUCCESS if operation.slot in model.streams else ANYTHING  # a stall may outlive its stream


def _destroy_event(model: Model, operation: ops.DestroyEvent) -> Permitted:
    return SUCCESS if operation.slot in model.events else REFUSED


def _record(model: Model, operation: ops.RecordEvent) -> Permitted:
    event, state = model.events.get(operation.slot), model.stream(operation.stream)
    if event is None:
        return REFUSED
    if state is None:
        return ANYTHING
    return REFUSED if event.device != state.device else enqueue(model, state)


def _wait(model: Model, operation: ops.WaitEvent) -> Permitted:
    event, state = model.events.get(operation.slot), model.stream(operation.stream)
    if event is None:
        return REFUSED
    if state is None:
        return ANYTHING
    capture = model.captures.of(state)
    if event.capture is None:
        return Permitted(codes=frozenset({ANY})) if capture is not None else enqueue(model, state)
    if model.captures.of(event.capture.origin) is not event.capture:
        return REFUSED  # its capture is over: it stands for nothing
    legacy = state.name == "" and model.can(Capability.LEGACY_DEFAULT_STREAM)
    if legacy or capture not in (None, event.capture):
        return REFUSED  # two captures do not merge, and the legacy default stream joins none
    if state.name == "":
        return Permitted(codes=frozenset({ANY}))  # one that waits for no other may join, as CUDA's per-thread one does
    return Permitted(codes=frozenset({ANY})) if event.capture.invalid else SUCCESS


def _query_event(model: Model, operation: ops.QueryEvent) -> Permitted:
    return _ask_event(model, operation.slot, ANSWERED)


def _synchronize_event(model: Model, operation: ops.SynchronizeEvent) -> Permitted:
    return _ask_event(model, operation.slot, SUCCESS)


def _ask_event(model: Model, slot: Slot, answered: Permitted) -> Permitted:
    event = model.events.get(slot)
    if event is None:
        return REFUSED
    if event.capture is not None:
        # Once its capture is over it stands for nothing: CUDA 13's driver calls the value invalid.
        is_over = model.captures.of(event.capture.origin) is not event.capture
        return while_capturing(model, only(CAPTURED_EVENT, INVALID_VALUE)) if is_over else only(CAPTURED_EVENT)
    return while_capturing(model, answered)


def _query_stream(model: Model, operation: ops.QueryStream) -> Permitted:
    return _ask_stream(model, operation.slot, ANSWERED)


def _synchronize_stream(model: Model, operation: ops.SynchronizeStream) -> Permitted:
    return _ask_stream(model, operation.slot, SUCCESS)


def _ask_stream(model: Model, slot: Slot | None, answered: Permitted) -> Permitted:
    stream = model.stream(slot)
    if stream is None:
        return ANYTHING
    capture = model.captures.of(stream)
    if capture is not None:
        return only(CAPTURE_UNSUPPORTED, *((CAPTURE_INVALIDATED,) if capture.invalid else ()))
    if model.captures.any_active and stream.name == "":
        return replace(answered, codes=answered.codes | {CAPTURE_UNSUPPORTED, CAPTURE_IMPLICIT})
    return while_capturing(model, answered)


def _synchronize_device(model: Model, operation: ops.SynchronizeDevice) -> Permitted:
    if model.captures.involves(model.device) and model.captures.forbids_unsafe_calls:
        return REFUSED
    return Permitted(codes=frozenset({ANY})) if model.captures.any_active else SUCCESS


def _begin_capture(model: Model, operation: ops.BeginCapture) -> Permitted:
    state = model.streams.get(operation.stream)
    if state is None:
        return ANYTHING
    return REFUSED if model.captures.of(state) is not None else SUCCESS


def _end_capture(model: Model, operation: ops.EndCapture) -> Permitted:
    state = model.streams.get(operation.stream)
    if state is None:
        return ANYTHING
    capture = model.captures.of(state)
    if capture is None or capture.origin is not state:
        return REFUSED
    if capture.invalid:
        return ANYTHING  # a call that was refused meanwhile may have ended it
    if capture.unjoined:
        return REFUSED
    return ANYTHING if capture.is_order_doubtful else SUCCESS


def _launch_graph(model: Model, operation: ops.LaunchGraph) -> Permitted:
    return enqueue(model, model.stream(operation.stream)) if operation.slot in model.graphs else REFUSED


def _destroy_graph(model: Model, operation: ops.DestroyGraph) -> Permitted:
    return SUCCESS if operation.slot in model.graphs else REFUSED


_ALWAYS_SERVED_ALIGNMENT_BYTES: Final = 256
_ALWAYS_REFUSED_BYTES: Final = 1 << 47
"""A request beyond the address space of a process: refused in any words (CUDA: invalid value, or out of memory)."""


def _allocate(model: Model, operation: ops.Allocate) -> Permitted:
    if operation.pool is not None and operation.pool not in model.pools:
        return replace(REFUSED, out_of_memory=True)  # whichever is seen first
    if operation.stream is not None and operation.stream not in model.streams:
        return ANYTHING
    limit = model.pools.get(operation.pool) if operation.pool is not None else None
    may_be_invalid = (
        _is_elsewhere(model, operation)
        or operation.size_bytes == 0
        or operation.size_bytes >= _ALWAYS_REFUSED_BYTES
        or (operation.alignment_bytes or 1) > _ALWAYS_SERVED_ALIGNMENT_BYTES
        or (limit is not None and operation.size_bytes > limit)
    )
    if not may_be_invalid and not model.captures.any_active:
        return MEMORY
    codes = {ANY} if may_be_invalid else set()
    state = model.stream(operation.stream)
    capture = model.captures.of(state) if state is not None else None
    if capture is not None and capture.invalid:
        codes.add(CAPTURE_INVALIDATED)
    if model.captures.any_active and not model.promises(Promise.ALLOCATES_IN_CAPTURES):
        # Nobody promised to serve it, in whatever mode: it may wait, ask an event, or go in its stream's order.
        codes |= {CAPTURE_UNSUPPORTED, *enqueue(model, state).codes}
    return Permitted(out_of_memory=True, codes=frozenset(codes))


def _is_elsewhere(model: Model, operation: ops.Allocate | ops.Stage) -> bool:
    """Whether a request names a stream or a pool of a device that is not current, which some libraries refuse."""
    if len(model.default_streams) == 1:
        return False
    stream = model.stream(operation.stream)
    pool = operation.pool if isinstance(operation, ops.Allocate) else None
    pool_is = pool is not None and model.pool_devices.get(pool, model.device) != model.device
    return pool_is or (stream is not None and stream.device != model.device)


def _stage(model: Model, operation: ops.Stage) -> Permitted:
    source = operation.source
    if source not in model.blocks:
        return ANYTHING if source in model.empty_blocks else replace(REFUSED, out_of_memory=True)
    if model.blocks[source].kind is MemoryKind.DEVICE:
        return ANYTHING  # some libraries copy it, some refuse it
    state = model.stream(operation.stream)
    if state is not None and model.captures.of(state) is not None:
        return Permitted(out_of_memory=True, codes=frozenset({CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED}))
    served = MEMORY
    if model.captures.any_active and not model.promises(Promise.ALLOCATES_IN_CAPTURES):
        served = replace(MEMORY, codes=frozenset({CAPTURE_UNSUPPORTED}))
    verdict = on_stream(model, operation.stream, served)
    # The block may be asked for before anything is put on the stream, and may fail as any other does.
    codes = verdict.codes | served.codes | ({ANY} if model.failures or _is_elsewhere(model, operation) else set())
    return verdict if verdict.anything else replace(verdict, out_of_memory=True, codes=codes)


def _free(model: Model, operation: ops.Free) -> Permitted:
    slot = operation.slot
    if slot in model.empty_blocks:
        return ANYTHING  # a block of zero bytes may or may not exist
    if slot not in model.blocks:
        return REFUSED
    if model.stream(operation.stream) is None:
        return ANYTHING  # the stream is gone: the block may go all the same
    stream = model.blocks[slot].stream if operation.stream is None else model.stream(operation.stream)
    codes = enqueue(model, stream).codes | ({ANY} if _is_freed_elsewhere(model, operation) else set())
    permitted = while_capturing(model, SUCCESS)
    return replace(permitted, codes=permitted.codes | codes) if codes else permitted


def _is_freed_elsewhere(model: Model, operation: ops.Free) -> bool:
    """Whether device memory is freed on a stream of another device than its own.

    CUDA and HIP serve it: their pools "may be from a device different than that of the specified hStream"
    (cudaMallocFromPoolAsync, hipMallocFromPoolAsync). A pool that records an event of its own for the free can't, as
    an event is of one device (cudaEventRecord), and may say so.
    """
    block, stream = model.blocks[operation.slot], model.stream(operation.stream)
    if operation.stream is None or stream is None:
        return False
    return block.kind in ON_THE_DEVICE and stream.device != block.device


def _trim(model: Model, operation: ops.Trim) -> Permitted:
    return beside_captures(model) if operation.pool is None or operation.pool in model.pools else REFUSED


def _copy(model: Model, operation: ops.Copy) -> Permitted:
    source, destination = operation.source, operation.destination
    if source not in model.blocks or destination not in model.blocks:
        return ANYTHING if {source, destination} & model.empty_blocks.keys() else REFUSED
    smaller = min(model.blocks[source].size_bytes, model.blocks[destination].size_bytes)
    if source == destination or (operation.size_bytes is not None and operation.size_bytes > smaller):
        return ANYTHING  # a block may be larger than it was asked for
    pageable = MemoryKind.PAGEABLE in (model.blocks[source].kind, model.blocks[destination].kind)
    # A copy of pageable memory may have to wait before it is answered.
    return on_stream(model, operation.stream, beside_captures(model) if pageable else SUCCESS)


def _fill(model: Model, operation: ops.Fill) -> Permitted:
    if operation.slot not in model.blocks:
        return ANYTHING if operation.slot in model.empty_blocks else REFUSED
    return on_stream(model, operation.stream, SUCCESS)


def _launch(model: Model, operation: ops.Launch) -> Permitted:
    some_empty = False
    for slot in (*operation.reads, *operation.writes):
        if slot in model.empty_blocks:
            some_empty = True
        elif slot not in model.blocks:
            return REFUSED
    stream = model.launch_stream(operation)
    if operation.instance is not None and model.runtime.finalized and _is_down(model):
        return ANYTHING  # the instance may have gone with the runtime
    if stream is not None and model.is_dead(stream):
        return ANYTHING  # an instance outlived the stream that it was given
    verdict = enqueue(model, stream)
    return replace(verdict, codes=verdict.codes | {ANY}) if some_empty else verdict


def _create_pool(model: Model, operation: ops.CreatePool) -> Permitted:
    codes = {ANY} if operation.limit_bytes == 0 else beside_captures(model).codes  # it may take a chunk at once
    return Permitted(out_of_memory=True, codes=frozenset(codes))


def _destroy_pool(model: Model, operation: ops.DestroyPool) -> Permitted:
    slot = operation.slot
    if model.empty_blocks or any(block.pool == slot for block in model.blocks.values()):
        return Permitted(codes=frozenset({ANY}))  # some pools refuse while their blocks are owned
    if slot not in model.pools:
        return REFUSED
    graphs = (*model.captures.memories, *(capture.memory for capture in model.graphs.values() if capture is not None))
    if any(slot in memory.pools for memory in graphs):
        return Permitted(codes=frozenset({ANY}))  # a graph may still run on what was allocated while it was captured
    return beside_captures(model)


def _initialize(model: Model, operation: ops.Initialize) -> Permitted:
    once = model.profile.initialization is Initialization.ONCE
    return REFUSED if model.runtime.initialized or (once and model.runtime.finalized) else beside_captures(model)


def _finalize(model: Model, operation: ops.Finalize) -> Permitted:
    return beside_captures(model) if model.runtime.initialized else REFUSED


def _is_down(model: Model) -> bool:
    return model.can(Capability.LIFECYCLE) and not model.runtime.initialized


def _create_policy(model: Model, operation: ops.CreatePolicy) -> Permitted:
    known = operation.instance is None or operation.instance in model.runtime.instances
    return beside_captures(model) if known and model.runtime.initialized else REFUSED


def _partition(model: Model, operation: ops.Partition) -> Permitted:
    known = operation.instance is None or operation.instance in model.runtime.instances
    return beside_captures(model) if known and model.runtime.initialized else REFUSED


def _create_instance(model: Model, operation: ops.CreateInstance) -> Permitted:
    if _is_down(model):
        return ANYTHING  # Kokkos makes none before it is initialised, a library without a life of its own does
    served = beside_captures(model)
    return served if operation.stream is None else on_stream(model, operation.stream, served)


def _destroy_instance(model: Model, operation: ops.DestroyInstance) -> Permitted:
    if operation.slot not in model.runtime.instances:
        return REFUSED
    return ANYTHING if model.runtime.finalized and _is_down(model) else beside_captures(model)


def _node(model: Model, operation: ops.Node) -> Permitted:
    return SUCCESS if model.tape.held.keys() >= set(operation.parents) else REFUSED


def _of_held_node(model: Model, operation: ops.Hold | ops.Drop) -> Permitted:
    return SUCCESS if operation.slot in model.tape.held else REFUSED


def _backward(model: Model, operation: ops.Backward) -> Permitted:
    if operation.slot not in model.tape.held:
        return REFUSED
    return Permitted(codes=frozenset({ANY})) if model.tape.may_refuse(operation.slot) else SUCCESS


def _select_device(model: Model, operation: ops.SelectDevice) -> Permitted:
    return SUCCESS if 0 <= operation.ordinal < model.profile.devices else REFUSED


PERMITS: Final[Mapping[type[Operation], Permit]] = {
    ops.DestroyStream: _destroy_stream,
    ops.Stall: _stall,
    ops.Release: _release,
    ops.DestroyEvent: _destroy_event,
    ops.RecordEvent: _record,
    ops.WaitEvent: _wait,
    ops.QueryEvent: _query_event,
    ops.SynchronizeEvent: _synchronize_event,
    ops.QueryStream: _query_stream,
    ops.SynchronizeStream: _synchronize_stream,
    ops.SynchronizeDevice: _synchronize_device,
    ops.BeginCapture: _begin_capture,
    ops.EndCapture: _end_capture,
    ops.LaunchGraph: _launch_graph,
    ops.DestroyGraph: _destroy_graph,
    ops.Allocate: _allocate,
    ops.Stage: _stage,
    ops.Free: _free,
    ops.Trim: _trim,
    ops.Copy: _copy,
    ops.Fill: _fill,
    ops.Launch: _launch,
    ops.CreatePool: _create_pool,
    ops.DestroyPool: _destroy_pool,
    ops.Initialize: _initialize,
    ops.Finalize: _finalize,
    ops.CreatePolicy: _create_policy,
    ops.Partition: _partition,
    ops.CreateInstance: _create_instance,
    ops.DestroyInstance: _destroy_instance,
    ops.Node: _node,
    ops.Hold: _of_held_node,
    ops.Drop: _of_held_node,
    ops.Backward: _backward,
    ops.SelectDevice: _select_device,
}
"""What is not among them is served whenever it is asked for."""
