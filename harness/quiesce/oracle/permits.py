"""Which outcomes a request may have, given what is known. A permitted set, not a prediction.

The reference is just another backend here. What is undefined upstream (work on a destroyed stream, say) permits
every answer; what is documented permits exactly the documented ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from quiesce import operations as ops
from quiesce.backend import Initialization
from quiesce.operations import MemoryKind, Operation
from quiesce.oracle.clocks import StreamState
from quiesce.oracle.facts import OF_ORDER
from quiesce.oracle.model import Model
from quiesce.outcomes import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    NOT_READY,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
    Unsupported,
)

ANY = "*"


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
        match outcome:
            case Allocated() | Done():
                return self.success
            case OutOfMemory():
                return self.out_of_memory
            case Rejected(code):
                return ANY in self.codes or code in self.codes
            case Unsupported():
                return True

    def __str__(self) -> str:
        if self.anything:
            return "any answer"
        words = ["success"] if self.success else []
        words += ["out of memory"] if self.out_of_memory else []
        words += ["a rejection" if code == ANY else f"rejected {code}" for code in sorted(self.codes)]
        return " or ".join(words)


_SUCCESS = Permitted()
_ANYTHING = Permitted(anything=True)
_REFUSED = Permitted(success=False, codes=frozenset({ANY}))
_MEMORY = Permitted(out_of_memory=True)
_ANSWERED = Permitted(codes=frozenset({NOT_READY}))

_CALLS_NOTHING_BELOW: Final = (
    ops.QueryStream,
    ops.QueryEvent,
    ops.Stall,
    ops.Release,
    ops.SelectDevice,
    ops.Mark,
    ops.InjectFailure,
)
_ALWAYS_SERVED_ALIGNMENT_BYTES: Final = 256
_ALWAYS_REFUSED_BYTES: Final = 1 << 47
"""A request beyond the address space of a process: refused in any words (CUDA: invalid value, or out of memory)."""


def _only(*codes: str) -> Permitted:
    return Permitted(success=False, codes=frozenset(codes))


def permits(model: Model, operation: Operation) -> Permitted:
    """Return the permitted outcomes of ``operation``, before it is applied."""
    of_order = type(operation) in OF_ORDER
    permitted = _permits_order(model, operation) if of_order else _permits_memory(model, operation)
    if not model.failures or not permitted.success or isinstance(operation, _CALLS_NOTHING_BELOW):
        return permitted
    # The armed failure may be met: out of memory, or an error in the backend's own words.
    return replace(permitted, out_of_memory=True, codes=permitted.codes | {ANY})


def _permits_memory(model: Model, operation: Operation) -> Permitted:
    match operation:
        case ops.Allocate():
            return _permits_allocation(model, operation)
        case ops.Stage(_, source, stream):
            if source not in model.blocks:
                return _ANYTHING if source in model.empty_blocks else _REFUSED
            if model.blocks[source].kind is MemoryKind.DEVICE:
                return _ANYTHING  # some libraries copy it, some refuse it
            capturing = (state := model.stream(stream)) is not None and model.captures.of(state) is not None
            if capturing:
                return Permitted(out_of_memory=True, codes=frozenset({CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED}))
            return _on_stream(model, stream, _MEMORY)
        case ops.Free(slot, stream):
            if slot in model.empty_blocks:
                return _ANYTHING  # a block of zero bytes may or may not exist
            if slot in model.blocks and model.stream(stream) is None:
                return _ANYTHING  # the stream is gone: the block may go all the same
            return _capturing(model, _SUCCESS) if slot in model.blocks else _REFUSED
        case ops.Trim(_, pool):
            return _SUCCESS if pool is None or pool in model.pools else _REFUSED
        case ops.Copy(source, destination, size, stream):
            if source not in model.blocks or destination not in model.blocks:
                return _ANYTHING if {source, destination} & model.empty_blocks.keys() else _REFUSED
            smaller = min(model.blocks[source].size_bytes, model.blocks[destination].size_bytes)
            if source == destination or (size is not None and size > smaller):
                return _ANYTHING  # a block may be larger than it was asked for
            return _on_stream(model, stream, _SUCCESS)
        case ops.Fill(slot, _, stream):
            if slot not in model.blocks:
                return _ANYTHING if slot in model.empty_blocks else _REFUSED
            return _on_stream(model, stream, _SUCCESS)
        case ops.Launch(reads, writes):
            if not {*reads, *writes} <= model.blocks.keys() | model.empty_blocks.keys():
                return _REFUSED
            stream_state = model.launch_stream(operation)
            if stream_state is not None and model.is_dead(stream_state):
                return _ANYTHING  # an instance outlived the stream that it was given
            verdict = _enqueue(model, stream_state)
            some_empty = not model.empty_blocks.keys().isdisjoint((*reads, *writes))
            return replace(verdict, codes=verdict.codes | {ANY}) if some_empty else verdict
        case ops.CreatePool(_, limit):
            return Permitted(out_of_memory=True, codes=frozenset({ANY} if limit == 0 else ()))
        case ops.DestroyPool(slot):
            if model.empty_blocks or any(block.pool == slot for block in model.blocks.values()):
                return Permitted(codes=frozenset({ANY}))  # some pools refuse while their blocks are owned
            return _beside_captures(model) if slot in model.pools else _REFUSED
        case ops.Initialize():
            once = model.profile.initialization is Initialization.ONCE
            return _REFUSED if model.initialized or (once and model.finalized) else _SUCCESS
        case ops.Finalize():
            return _SUCCESS if model.initialized else _REFUSED
        case ops.CreatePolicy(instance):
            known = instance is None or instance in model.instances
            return _SUCCESS if known and model.initialized else _REFUSED
        case ops.Partition(_, instance):
            known = model.initialized if instance is None else instance in model.instances
            return _SUCCESS if known else _REFUSED
        case ops.CreateInstance(_, stream):
            return _SUCCESS if stream is None else _on_stream(model, stream, _SUCCESS)
        case ops.DestroyInstance(slot):
            return _beside_captures(model) if slot in model.instances else _REFUSED
        case ops.Node(_, parents):
            return _SUCCESS if set(parents) <= model.tape.held.keys() else _REFUSED
        case ops.Hold(slot) | ops.Drop(slot):
            return _SUCCESS if slot in model.tape.held else _REFUSED
        case ops.Backward(slot):
            if slot not in model.tape.held:
                return _REFUSED
            return Permitted(codes=frozenset({ANY})) if model.tape.may_refuse(slot) else _SUCCESS
        case ops.SelectDevice(ordinal):
            return _SUCCESS if 0 <= ordinal < model.profile.devices else _REFUSED
        case _:
            return _SUCCESS


def _permits_order(model: Model, operation: Operation) -> Permitted:
    match operation:
        case ops.DestroyStream(slot) if slot in model.streams and model.captures.of(model.streams[slot]) is not None:
            return _ANYTHING
        case ops.DestroyStream(slot) | ops.Stall(slot):
            return _SUCCESS if slot in model.streams else _REFUSED
        case ops.Release(slot):
            return _SUCCESS if slot in model.streams else _ANYTHING  # a stall may outlive its stream
        case ops.DestroyEvent(slot):
            return _SUCCESS if slot in model.events else _REFUSED
        case ops.RecordEvent(slot, stream):
            return _record(model, slot, stream)
        case ops.WaitEvent(slot, stream):
            return _wait(model, slot, stream)
        case ops.QueryEvent(slot) | ops.SynchronizeEvent(slot):
            return _ask_event(model, slot, isinstance(operation, ops.QueryEvent))
        case ops.QueryStream(slot) | ops.SynchronizeStream(slot):
            return _ask_stream(model, slot, isinstance(operation, ops.QueryStream))
        case ops.SynchronizeDevice():
            if model.captures.involves(model.device) and model.captures.forbids_unsafe_calls:
                return _REFUSED
            return Permitted(codes=frozenset({ANY})) if model.captures.any_active else _SUCCESS
        case ops.BeginCapture(stream):
            state = model.streams.get(stream)
            if state is None:
                return _ANYTHING
            return _REFUSED if model.captures.of(state) is not None else _SUCCESS
        case ops.EndCapture(_, stream):
            return _end_capture(model, stream)
        case ops.LaunchGraph(slot, stream):
            return _enqueue(model, model.stream(stream)) if slot in model.graphs else _REFUSED
        case ops.DestroyGraph(slot):
            return _SUCCESS if slot in model.graphs else _REFUSED
        case _:
            return _SUCCESS


def _permits_allocation(model: Model, operation: ops.Allocate) -> Permitted:
    if operation.pool is not None and operation.pool not in model.pools:
        return _REFUSED
    if operation.stream is not None and operation.stream not in model.streams:
        return _ANYTHING
    limit = model.pools.get(operation.pool) if operation.pool is not None else None
    may_be_invalid = (
        operation.size_bytes == 0
        or operation.size_bytes >= _ALWAYS_REFUSED_BYTES
        or (operation.alignment_bytes or 1) > _ALWAYS_SERVED_ALIGNMENT_BYTES
        or (limit is not None and operation.size_bytes > limit)
    )
    forbidden = model.captures.forbids_unsafe_calls
    if not may_be_invalid and not forbidden:
        return _MEMORY
    codes = {ANY} if may_be_invalid else set()
    codes |= {CAPTURE_UNSUPPORTED} if forbidden else set()
    return Permitted(out_of_memory=True, codes=frozenset(codes))


def _capturing(model: Model, permitted: Permitted) -> Permitted:
    if not model.captures.forbids_unsafe_calls:
        return permitted
    return Permitted(permitted.success, permitted.out_of_memory, permitted.codes | {CAPTURE_UNSUPPORTED})


def _beside_captures(model: Model) -> Permitted:
    """Return what a call may answer that synchronises, or may do so, and does not name a capture."""
    return Permitted(codes=frozenset({CAPTURE_UNSUPPORTED})) if model.captures.any_active else _SUCCESS


def _on_stream(model: Model, stream: str | None, permitted: Permitted) -> Permitted:
    state = model.stream(stream)
    if state is None:
        return _ANYTHING
    verdict = _enqueue(model, state)
    return permitted if verdict is _SUCCESS else verdict


def _enqueue(model: Model, stream: StreamState | None) -> Permitted:
    if stream is None:
        return _ANYTHING  # work on a destroyed stream is undefined
    if stream.name == "" and model.captures.involves_blocking_stream(stream.device):
        return _only(CAPTURE_IMPLICIT)
    capture = model.captures.of(stream)
    if capture is not None and capture.invalid:
        return Permitted(codes=frozenset({CAPTURE_INVALIDATED}))
    return _SUCCESS


def _record(model: Model, slot: str, stream: str | None) -> Permitted:
    event, state = model.events.get(slot), model.stream(stream)
    if event is None:
        return _REFUSED
    if state is None:
        return _ANYTHING
    return _REFUSED if event.device != state.device else _enqueue(model, state)


def _wait(model: Model, slot: str, stream: str | None) -> Permitted:
    event, state = model.events.get(slot), model.stream(stream)
    if event is None:
        return _REFUSED
    if state is None:
        return _ANYTHING
    capture = model.captures.of(state)
    if event.capture is None:
        return Permitted(codes=frozenset({ANY})) if capture is not None else _enqueue(model, state)
    if model.captures.of(event.capture.origin) is not event.capture:
        return _REFUSED  # its capture is over: it stands for nothing
    if capture not in (None, event.capture) or state.name == "":
        return _REFUSED  # two captures do not merge, and the default stream joins none
    return Permitted(codes=frozenset({ANY})) if event.capture.invalid else _SUCCESS


def _ask_event(model: Model, slot: str, query: bool) -> Permitted:
    event = model.events.get(slot)
    if event is None:
        return _REFUSED
    if event.capture is not None:
        return _only(CAPTURED_EVENT)
    answered = _ANSWERED if query else _SUCCESS
    return _capturing(model, answered)


def _ask_stream(model: Model, slot: str | None, query: bool) -> Permitted:
    stream = model.stream(slot)
    if stream is None:
        return _ANYTHING
    if model.captures.of(stream) is not None:
        return _only(CAPTURE_UNSUPPORTED)
    answered = _ANSWERED if query else _SUCCESS
    if model.captures.any_active and stream.name == "":
        return replace(answered, codes=answered.codes | {CAPTURE_UNSUPPORTED, CAPTURE_IMPLICIT})
    return answered


def _end_capture(model: Model, stream: str) -> Permitted:
    state = model.streams.get(stream)
    if state is None:
        return _ANYTHING
    capture = model.captures.of(state)
    if capture is None or capture.origin is not state:
        return _REFUSED
    if capture.invalid:
        return _ANYTHING  # a call that was refused meanwhile may have ended it
    return _REFUSED if capture.unjoined else _SUCCESS
