"""Which outcomes a request on streams, events, captures and graphs may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from quiesce.allocators.oracle.clocks import StreamState
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.permitted import ANSWERED, ANY, ANYTHING, REFUSED, SUCCESS, Permitted, only
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Flavour
from quiesce.model.operations import Operation, Slot
from quiesce.model.outcomes import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    INVALID_VALUE,
)

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
}
