"""What an answer changes in the model: of a request that was served, by its kind, and of a query.

A query says what is complete, and whether somebody answered too early or too late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from quiesce.allocators.oracle import reuse, staging
from quiesce.allocators.oracle.change import Change, Conflict
from quiesce.allocators.oracle.clocks import StreamState, merge
from quiesce.allocators.oracle.facts import RUNTIME, EventState, Facts
from quiesce.allocators.oracle.failures import ArmedFailure
from quiesce.model import operations as ops
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import NOT_READY, Allocated, Done, Outcome, Rejected

DOUBTED_WHERE_THEY_FAIL: Final = (
    ops.DestroyPool
    | ops.DestroyStream
    | ops.DestroyEvent
    | ops.DestroyGraph
    | ops.DestroyInstance
    | ops.RecordEvent
    | ops.Finalize
)
"""Requests after which, where a call below failed, nobody knows whether they happened."""
_MAKES: Final = (
    ops.CreatePool | ops.CreateStream | ops.CreateEvent | ops.EndCapture | ops.CreateInstance | ops.Initialize
)

_Effect: TypeAlias = Callable[[Facts, Any, Change], None]  # each takes the one operation type it is filed under


def enter(facts: Facts, operation: Operation, change: Change) -> None:
    """Enter what ``operation``, which was served, changed beyond what is entered before its observations."""
    if facts.doubts.things and isinstance(operation, DOUBTED_WHERE_THEY_FAIL | _MAKES):
        facts.doubts.things.discard(getattr(operation, "slot", RUNTIME))
    effect = _EFFECTS.get(type(operation))
    if effect is not None:
        effect(facts, operation, change)


# -- memory ------------------------------------------------------------------------------------------------------------


def _allocate(facts: Facts, operation: ops.Allocate, change: Change) -> None:
    if isinstance(change.outcome, Allocated):
        reuse.allocate(facts, operation, change.outcome, change)
        facts.chunks.from_nothing.learn(operation, change, facts.memory, _whole_bytes(facts, operation))


def _whole_bytes(facts: Facts, operation: ops.Allocate) -> int:
    """Return the most that the pool of a request may hold."""
    profile, limit = facts.profile, facts.pools.get(operation.pool or "")
    whole = profile.pinned_capacity_bytes if operation.kind is MemoryKind.PINNED else profile.capacity_bytes
    return whole if limit is None else min(whole, limit)


def _stage(facts: Facts, operation: ops.Stage, change: Change) -> None:
    if isinstance(change.outcome, Allocated):
        staging.stage(facts, operation, change.outcome, change)


def _fill(facts: Facts, operation: ops.Fill, change: Change) -> None:
    reuse.use(facts, (operation.slot,), facts.stream(operation.stream), change)


def _launch(facts: Facts, operation: ops.Launch, change: Change) -> None:
    stream = facts.launch_stream(operation)
    reuse.use(facts, (*operation.reads, *operation.writes), stream, change)
    reuse.take_scratch(facts, stream)


def _create_pool(facts: Facts, operation: ops.CreatePool, change: Change) -> None:
    facts.pools[operation.slot], facts.pool_devices[operation.slot] = operation.limit_bytes, facts.device
    facts.chunks.from_nothing.forget(operation.slot)


def _inject(facts: Facts, operation: ops.InjectFailure, change: Change) -> None:
    facts.failures[operation.point] = ArmedFailure(operation.error, operation.nth)


# -- runtimes and tapes ------------------------------------------------------------------------------------------------


def _select_device(facts: Facts, operation: ops.SelectDevice, change: Change) -> None:
    facts.device = operation.ordinal


def _initialize(facts: Facts, operation: ops.Initialize, change: Change) -> None:
    facts.runtime.initialized = True


def _finalize(facts: Facts, operation: ops.Finalize, change: Change) -> None:
    facts.runtime.initialized, facts.runtime.finalized = False, True


def _partition(facts: Facts, operation: ops.Partition, change: Change) -> None:
    for slot in operation.slots:
        _make_instance(facts, slot, None)


def _create_instance(facts: Facts, operation: ops.CreateInstance, change: Change) -> None:
    _make_instance(facts, operation.slot, operation.stream)


def _make_instance(facts: Facts, slot: Slot, stream: Slot | None) -> None:
    given = facts.stream(stream) if stream is not None else None
    facts.runtime.instances[slot] = given or facts.order.new_stream(f"internal:{slot}", facts.device)


def _destroy_instance(facts: Facts, operation: ops.DestroyInstance, change: Change) -> None:
    state = facts.runtime.instances.pop(operation.slot, None)
    if state is not None:
        facts.order.complete(dict(state.clock))
        facts.order.note_sure(state.certain)


def _of_tape(facts: Facts, operation: Operation, change: Change) -> None:
    facts.tape.apply(operation)


# -- streams and events ------------------------------------------------------------------------------------------------


def _destroy_stream(facts: Facts, operation: ops.DestroyStream, change: Change) -> None:
    state = facts.streams.pop(operation.slot, None)
    if state is not None:
        behind = facts.order.freed_behind(state, {}) if facts.memory.is_freed_on(state) else {}
        facts.memory.lose_stream(state, facts.default_streams[state.device], behind)
        facts.order.doubt_stall(state)  # nobody could release it any more: the backend may have


def _create_event(facts: Facts, operation: ops.CreateEvent, change: Change) -> None:
    facts.events[operation.slot] = EventState(operation.slot, facts.device)


def _destroy_event(facts: Facts, operation: ops.DestroyEvent, change: Change) -> None:
    facts.events.pop(operation.slot, None)


def _record(facts: Facts, operation: ops.RecordEvent, change: Change) -> None:
    event, state = facts.events.get(operation.slot), facts.stream(operation.stream)
    if event is None or state is None:
        return
    event.recorded, event.stream = True, state
    event.capture = facts.captures.of(state)
    event.clock = facts.order.record(state) if event.capture is None else event.capture.snapshot(state)
    event.certain = dict(state.certain)


def _wait(facts: Facts, operation: ops.WaitEvent, change: Change) -> None:
    event, state = facts.events.get(operation.slot), facts.stream(operation.stream)
    if event is None or state is None:
        return
    if event.capture is None:
        facts.order.disturb(state)
        if event.recorded:
            facts.order.wait(state, event.clock, event.certain)
        return
    facts.captures.join(state, event.capture, event.clock)


def _synchronize_stream(facts: Facts, operation: ops.SynchronizeStream, change: Change) -> None:
    state = facts.stream(operation.slot)
    if state is not None:
        facts.order.complete(facts.order.encompassed(state))
        facts.order.note_sure(state.certain)
        facts.order.release(state)
    facts.order.doubt_stalls()  # nobody is forbidden to wait for more


def _synchronize_event(facts: Facts, operation: ops.SynchronizeEvent, change: Change) -> None:
    event = facts.events.get(operation.slot)
    if event is not None and event.capture is None:
        facts.order.complete(event.clock)
        facts.order.note_sure(event.certain)
    facts.order.doubt_stalls()  # nobody is forbidden to wait for more


def _synchronize_device(facts: Facts, operation: ops.SynchronizeDevice, change: Change) -> None:
    facts.order.complete_device(facts.device)
    facts.order.doubt_stalls()  # nobody is forbidden to wait for more, as for another device's stream
    facts.doubts.waits = facts.doubts.waits and facts.profile.devices > 1


def _stall(facts: Facts, operation: ops.Stall, change: Change) -> None:
    state = facts.streams.get(operation.slot)
    if state is not None and facts.captures.of(state) is None:  # else it may be in the graph, and holds nothing yet
        facts.order.stall(state)


def _release(facts: Facts, operation: ops.Release, change: Change) -> None:
    if operation.slot in facts.streams:
        facts.order.release(facts.streams[operation.slot])


# -- captures and graphs -----------------------------------------------------------------------------------------------


def _begin_capture(facts: Facts, operation: ops.BeginCapture, change: Change) -> None:
    if operation.stream in facts.streams:
        facts.captures.begin(facts.streams[operation.stream], operation.mode)


def _launch_graph(facts: Facts, operation: ops.LaunchGraph, change: Change) -> None:
    graph, state = facts.graphs.get(operation.slot), facts.stream(operation.stream)
    if graph is None or state is None:
        return
    capture = facts.captures.of(state)
    graph.memory.launched_on[state.timeline] = state
    for blocks in graph.uses or [()]:  # an empty graph is an action all the same
        if capture is not None:
            capture.add(state, blocks)
            continue
        facts.order.enqueue(state)
        merge(graph.memory.runs, state.clock)
        for block in blocks:
            reuse.meet(facts, block, state, change, excused_by=block.stream)
            block.uses.update(state.clock)
    reuse.take_scratch(facts, state)


def _destroy_graph(facts: Facts, operation: ops.DestroyGraph, change: Change) -> None:
    graph = facts.graphs.pop(operation.slot, None)
    if graph is None:
        return
    graph.memory.is_gone = True
    for state in () if facts.sees_order else graph.memory.launched_on.values():
        facts.order.mark(state)  # an allocator may have recorded an event there, unseen


_EFFECTS: Final[Mapping[type[Operation], _Effect]] = {
    ops.Allocate: _allocate,
    ops.Stage: _stage,
    ops.Copy: reuse.copy,
    ops.Fill: _fill,
    ops.Launch: _launch,
    ops.CreatePool: _create_pool,
    ops.InjectFailure: _inject,
    ops.SelectDevice: _select_device,
    ops.Initialize: _initialize,
    ops.Finalize: _finalize,
    ops.Partition: _partition,
    ops.CreateInstance: _create_instance,
    ops.DestroyInstance: _destroy_instance,
    ops.Node: _of_tape,
    ops.Hold: _of_tape,
    ops.Drop: _of_tape,
    ops.Backward: _of_tape,
    ops.DestroyStream: _destroy_stream,
    ops.CreateEvent: _create_event,
    ops.DestroyEvent: _destroy_event,
    ops.RecordEvent: _record,
    ops.WaitEvent: _wait,
    ops.SynchronizeEvent: _synchronize_event,
    ops.SynchronizeStream: _synchronize_stream,
    ops.SynchronizeDevice: _synchronize_device,
    ops.Stall: _stall,
    ops.Release: _release,
    ops.BeginCapture: _begin_capture,
    ops.LaunchGraph: _launch_graph,
    ops.DestroyGraph: _destroy_graph,
}
"""Frees, ends of pools and of captures, and new streams are entered by the model before the observations."""


def judge_query(facts: Facts, operation: ops.QueryStream | ops.QueryEvent, outcome: Outcome, change: Change) -> None:
    """Enter the answer to a query, and note on ``change`` where it contradicts what is certain."""
    stream: StreamState | None = None
    if isinstance(operation, ops.QueryStream):
        stream = asked = facts.stream(operation.slot)
        clock = dict(stream.clock) if stream is not None else {}
        certain = stream.certain if stream is not None else {}
    else:
        event = facts.events.get(operation.slot)
        asked = event.stream if event is not None else None
        clock = event.clock if event is not None and event.capture is None else {}
        certain = event.certain if event is not None and event.capture is None else {}
    if isinstance(outcome, Done):
        change.early = facts.order.certainly_pending(certain)
        if asked is not None and asked.stall_mark is None:
            facts.order.note_sure(certain)
        if asked is not None:
            facts.order.complete(clock, asked=asked)
    elif outcome == Rejected(NOT_READY):
        held_back = (
            facts.doubts.waits or facts.doubts.completion or (stream is not None and stream.stall_mark is not None)
        )
        about = facts.order.encompassed(stream) if stream is not None else clock
        change.certain_completion = not held_back and facts.order.is_surely_complete(about, certain)
        if stream is not None:
            _believe(facts, stream, change)


def _believe(facts: Facts, stream: StreamState, change: Change) -> None:
    for suspect in facts.evidence.proven_by_pending(stream):
        if isinstance(suspect.subject, Conflict):
            change.conflicts += (Conflict(suspect.subject.user, suspect.subject.earlier, stream),)
        else:
            change.returned += (suspect.subject,)
