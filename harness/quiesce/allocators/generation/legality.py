"""What a sequence may ask for: whether an operation is legal, a misuse that is refused, or a race of its own making.

A *misuse* (a double free, a dead stream) has an answer that every backend must give or that is left open, so hostile
sequences contain it. A *race* has none: nobody can be blamed for what follows, so no sequence contains one, and no
shrinking may introduce one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from quiesce.allocators.generation.state import State
from quiesce.allocators.generation.things import Block, Graph, Stream
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile, Initialization, Promise
from quiesce.model.operations import MemoryKind, Operation, Slot


class Legality(enum.IntEnum):
    """How legal an operation is; the greater, the worse."""

    LEGAL = 0
    MISUSE = 1
    RACE = 2


def worst_legality(description: Description, device: DeviceProfile, operations: Iterable[Operation]) -> Legality:
    """Return how legal the worst of the operations is, on a fresh context of such a backend."""
    state = State(description, device)
    worst = Legality.LEGAL
    for operation in operations:
        worst = max(worst, judge(state, operation))
        if worst is Legality.RACE:
            break
        state.apply(operation)
    return worst


def judge(state: State, operation: Operation) -> Legality:
    """Return how legal the next operation is."""
    judge = _JUDGES.get(type(operation))
    return Legality.LEGAL if judge is None else judge(state, operation)


def may_use(state: State, block: Block, stream: Stream) -> bool:
    """Whether work on ``stream`` comes behind the allocation of ``block``; host memory is there at once."""
    if block.kind is not MemoryKind.DEVICE:
        return True
    return state.order.is_behind(stream, block.stream, block.made_at, implicitly=True)


def may_free(state: State, block: Block, stream: Stream) -> bool:
    """Whether a free on ``stream`` comes behind the allocation and, unless the backend tracks them, the uses."""
    order = state.order
    if state.tracks_uses:
        return order.is_behind(stream, block.stream, block.made_at, implicitly=False)
    if block.kind is not MemoryKind.DEVICE:
        return order.are_behind(None, block.uses)
    return order.is_behind(stream, block.stream, block.made_at, implicitly=False) and order.are_behind(
        stream, block.uses
    )


def may_run(graph: Graph) -> bool:
    """Whether a graph's memory is its own, or still the sequence's."""
    return all(block.alive or block.is_of_graph for block in graph.blocks)


def _verdict(legal: bool) -> Legality:
    return Legality.LEGAL if legal else Legality.MISUSE


def _allocate(state: State, operation: ops.Allocate) -> Legality:
    stream = state.stream(operation.stream)
    pool = state.pools.get(operation.pool) if operation.pool is not None else None
    if stream is None or (operation.pool is not None and pool is None):
        return Legality.MISUSE
    here = stream.device == state.device and (pool is None or pool.device == state.device)
    ordered = operation.kind is MemoryKind.DEVICE  # other memory is not allocated in the order of a stream
    return _verdict(here and operation.size_bytes > 0 and not (ordered and _is_implicit(state, stream)))


def _is_implicit(state: State, stream: Stream) -> bool:
    """Whether the stream is a default one, or a library's own, which may have to wait for what is being captured."""
    return bool(state.captures) and stream.slot is None


def _free(state: State, operation: ops.Free) -> Legality:
    block = state.blocks.get(operation.slot)
    if block is None:
        return _verdict(operation.slot in state.empty_blocks)
    stream = state.free_stream(block, operation.stream)
    if stream is None:
        return Legality.MISUSE
    if not may_free(state, block, stream):
        return Legality.RACE
    return _verdict(not _is_implicit(state, stream))


def _uses(state: State, slots: tuple[Slot, ...], stream: Stream | None) -> Legality:
    blocks = [state.blocks[slot] for slot in slots if slot in state.blocks]
    if stream is None or len(blocks) < len(slots):
        return Legality.MISUSE
    return _work(state, blocks, stream)


def _work(state: State, blocks: Iterable[Block], stream: Stream) -> Legality:
    if _is_implicit(state, stream):
        return Legality.MISUSE
    if stream.capture is not None and (stream.capture.spoiled or any(not block.alive for block in blocks)):
        return Legality.MISUSE
    if any(block.device != stream.device and block.kind is MemoryKind.DEVICE for block in blocks):
        return Legality.RACE
    if stream.capture is None and not all(may_use(state, block, stream) for block in blocks):
        return Legality.RACE
    return Legality.LEGAL


def _copy(state: State, operation: ops.Copy) -> Legality:
    source, destination = (state.blocks.get(slot) for slot in (operation.source, operation.destination))
    stream = state.stream(operation.stream)
    if source is None or destination is None or stream is None:
        return Legality.MISUSE
    pageable = MemoryKind.PAGEABLE in (source.kind, destination.kind)
    too_long = (operation.size_bytes or 0) > min(source.size_bytes, destination.size_bytes)
    if too_long or source is destination or (pageable and state.captures):
        return Legality.MISUSE
    return _work(state, (source, destination), stream)


def _stage(state: State, operation: ops.Stage) -> Legality:
    source, stream = state.blocks.get(operation.source), state.stream(operation.stream)
    if source is None or stream is None or source.kind not in (MemoryKind.PINNED, MemoryKind.PAGEABLE):
        return Legality.MISUSE
    if state.captures or stream.device != state.device:
        return Legality.MISUSE
    return Legality.LEGAL


def _fill(state: State, operation: ops.Fill) -> Legality:
    return _kernel(state, (operation.slot,), state.stream(operation.stream))


def _launch(state: State, operation: ops.Launch) -> Legality:
    return _kernel(state, (*operation.reads, *operation.writes), state.launch_stream(operation))


def _kernel(state: State, slots: tuple[Slot, ...], stream: Stream | None) -> Legality:
    """Kernels do not touch pageable memory: when they are done with it, nobody could know."""
    if any(slot in state.blocks and state.blocks[slot].kind is MemoryKind.PAGEABLE for slot in slots):
        return Legality.RACE
    return _uses(state, slots, stream)


def _destroy_pool(state: State, operation: ops.DestroyPool) -> Legality:
    pool = state.pools.get(operation.slot)
    return _verdict(pool is not None and not pool.blocks and not state.captures)


def _trim(state: State, operation: ops.Trim) -> Legality:
    return _verdict((operation.pool is None or operation.pool in state.pools) and not state.captures)


def _destroy_stream(state: State, operation: ops.DestroyStream) -> Legality:
    stream = state.streams.get(operation.slot)
    if stream is None or state.captures:
        return Legality.MISUSE
    return _verdict(not state.is_needed(stream))


def _quiet_stream(state: State, operation: ops.SynchronizeStream | ops.QueryStream) -> Legality:
    return _verdict(state.stream(operation.slot) is not None and not state.captures)


def _held_stream(state: State, operation: ops.Stall | ops.Release) -> Legality:
    return _verdict(operation.slot in state.streams and not state.captures)


def _quiet_event(state: State, operation: ops.QueryEvent | ops.SynchronizeEvent) -> Legality:
    event = state.events.get(operation.slot)
    if event is None or event.capture is not None or state.captures:
        return Legality.MISUSE
    dead = event.recorded_on is not None and not event.recorded_on.alive
    return Legality.RACE if dead else Legality.LEGAL


def _record(state: State, operation: ops.RecordEvent) -> Legality:
    event, stream = state.events.get(operation.slot), state.stream(operation.stream)
    if event is None or stream is None or event.device != stream.device:
        return Legality.MISUSE
    spoiled = stream.capture is not None and stream.capture.spoiled
    return _verdict(not spoiled and not _is_implicit(state, stream))


def _wait(state: State, operation: ops.WaitEvent) -> Legality:
    event, stream = state.events.get(operation.slot), state.stream(operation.stream)
    if event is None or stream is None or _is_implicit(state, stream):
        return Legality.MISUSE
    capture = event.capture
    if capture is not None:
        joins = stream.capture is None and stream.device == capture.origin.device
        return _verdict(not capture.over and not capture.spoiled and (joins or stream.capture is capture))
    if event.recorded_on is not None and not event.recorded_on.alive:
        return Legality.RACE  # HIP reads the destroyed stream (upstream: ROCm#4670)
    return _verdict(stream.capture is None)


def _begin_capture(state: State, operation: ops.BeginCapture) -> Legality:
    return _verdict(operation.stream in state.streams and not state.captures)


def _end_capture(state: State, operation: ops.EndCapture) -> Legality:
    stream = state.streams.get(operation.stream)
    capture = stream.capture if stream is not None else None
    return _verdict(capture is not None and capture.origin is stream and not capture.unjoined and not capture.spoiled)


def _launch_graph(state: State, operation: ops.LaunchGraph) -> Legality:
    graph, stream = state.graphs.get(operation.slot), state.stream(operation.stream)
    if graph is None or stream is None:
        return Legality.MISUSE
    if not may_run(graph) or stream.capture is not None or stream.device != graph.device:
        return Legality.RACE  # it touches memory that is somebody else's by now
    return _work(state, graph.blocks, stream)


def _select_device(state: State, operation: ops.SelectDevice) -> Legality:
    return _verdict(operation.ordinal < state.profile.devices and not state.captures)


def _initialize(state: State, _: ops.Initialize) -> Legality:
    repeatable = state.profile.initialization is Initialization.REPEATABLE and Promise.REINITIALIZES in state.promises
    return _verdict(not state.initialized and (repeatable or not state.finalized))


def _finalize(state: State, _: ops.Finalize) -> Legality:
    return _verdict(state.initialized and not state.instances)


def _runtime_is_up(state: State) -> bool:
    return state.initialized or Capability.LIFECYCLE not in state.capabilities


def _create_policy(state: State, operation: ops.CreatePolicy) -> Legality:
    known = operation.instance is None or operation.instance in state.instances
    return _verdict(known and state.initialized)


def _create_instance(state: State, operation: ops.CreateInstance) -> Legality:
    known = operation.stream is None or operation.stream in state.streams
    return _verdict(known and _runtime_is_up(state) and not state.captures)


def _destroy_instance(state: State, operation: ops.DestroyInstance) -> Legality:
    return _verdict(operation.slot in state.instances and not state.captures)


def _partition(state: State, operation: ops.Partition) -> Legality:
    known = operation.instance is None or operation.instance in state.instances
    return _verdict(known and state.initialized and not state.captures)


_Judge = Callable[[State, Any], Legality]  # each takes the one operation type that it is filed under

_JUDGES: Final[Mapping[type[Operation], _Judge]] = {
    ops.Allocate: _allocate,
    ops.Free: _free,
    ops.Trim: _trim,
    ops.Copy: _copy,
    ops.Stage: _stage,
    ops.Fill: _fill,
    ops.Launch: _launch,
    ops.CreatePool: lambda state, _: _verdict(not state.captures),
    ops.DestroyPool: _destroy_pool,
    ops.CreateStream: lambda state, _: _verdict(not state.captures),
    ops.DestroyStream: _destroy_stream,
    ops.SynchronizeStream: _quiet_stream,
    ops.QueryStream: _quiet_stream,
    ops.DestroyEvent: lambda state, operation: _verdict(operation.slot in state.events and not state.captures),
    ops.RecordEvent: _record,
    ops.WaitEvent: _wait,
    ops.QueryEvent: _quiet_event,
    ops.SynchronizeEvent: _quiet_event,
    ops.SynchronizeDevice: lambda state, _: _verdict(not state.captures),
    ops.Stall: _held_stream,
    ops.Release: _held_stream,
    ops.BeginCapture: _begin_capture,
    ops.EndCapture: _end_capture,
    ops.LaunchGraph: _launch_graph,
    ops.DestroyGraph: lambda state, operation: _verdict(operation.slot in state.graphs),
    ops.SelectDevice: _select_device,
    ops.Initialize: _initialize,
    ops.Finalize: _finalize,
    ops.CreatePolicy: _create_policy,
    ops.CreateInstance: _create_instance,
    ops.DestroyInstance: _destroy_instance,
    ops.Partition: _partition,
    ops.Node: lambda state, operation: _verdict(all(parent in state.nodes for parent in operation.parents)),
    ops.Hold: lambda state, operation: _verdict(operation.slot in state.nodes),
    ops.Drop: lambda state, operation: _verdict(operation.slot in state.nodes),
    ops.Backward: lambda state, operation: _verdict(operation.slot in state.nodes),
}
