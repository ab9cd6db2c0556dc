"""What an operation does to slots: which it uses, makes and ends, and of what kind they are."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, NamedTuple

from quiesce import operations as ops
from quiesce.operations import Operation, Slot

FOREIGN_SLOT: Final = "foreign"
"""The slot that nothing makes: a pointer from elsewhere. Hostile sequences name it where a block belongs."""


class SlotKind(enum.StrEnum):
    """The kinds of thing that a slot can stand for."""

    BLOCK = "block"
    STREAM = "stream"
    EVENT = "event"
    POOL = "pool"
    GRAPH = "graph"
    INSTANCE = "instance"
    NODE = "node"

    @property
    def with_article(self) -> str:
        """The kind as prose names one: ``a stream``, ``an event``."""
        return f"an {self}" if self[0] in "aeiou" else f"a {self}"

    @property
    def made_by(self) -> str:
        """A request that makes one, with ``{slot}`` for its name."""
        match self:
            case SlotKind.BLOCK:
                return "'{slot} = allocate SIZE'"
            case SlotKind.GRAPH:
                return "'{slot} = end capture on STREAM'"
            case SlotKind.NODE:
                return "'{slot} = node'"
        return f"'{{slot}} = create {self}'"

    @property
    def ended_by(self) -> str:
        """The request that ends one, with ``{slot}`` for its name."""
        match self:
            case SlotKind.BLOCK:
                return "free {slot}"
            case SlotKind.NODE:
                return "drop {slot}"
        return f"destroy {self} {{slot}}"


class Use(NamedTuple):
    """A slot that an operation refers to, and the kind of thing it has to be."""

    slot: Slot
    kind: SlotKind


class Making(NamedTuple):
    """A slot that an operation makes; ``pool`` is where a block comes from."""

    slot: Slot
    kind: SlotKind
    pool: Slot | None = None


_BLOCK, _STREAM, _EVENT, _POOL = SlotKind.BLOCK, SlotKind.STREAM, SlotKind.EVENT, SlotKind.POOL
_GRAPH, _INSTANCE, _NODE = SlotKind.GRAPH, SlotKind.INSTANCE, SlotKind.NODE

_MADE: Final[Mapping[type[Operation], Mapping[str, SlotKind]]] = {
    ops.Allocate: {"slot": _BLOCK},
    ops.Stage: {"slot": _BLOCK},
    ops.CreatePool: {"slot": _POOL},
    ops.CreateStream: {"slot": _STREAM},
    ops.CreateEvent: {"slot": _EVENT},
    ops.EndCapture: {"slot": _GRAPH},
    ops.CreateInstance: {"slot": _INSTANCE},
    ops.Partition: {"slots": _INSTANCE},
    ops.Node: {"slot": _NODE},
}
_USED: Final[Mapping[type[Operation], Mapping[str, SlotKind]]] = {
    ops.Allocate: {"stream": _STREAM, "pool": _POOL},
    ops.Free: {"slot": _BLOCK, "stream": _STREAM},
    ops.Trim: {"pool": _POOL},
    ops.Copy: {"source": _BLOCK, "destination": _BLOCK, "stream": _STREAM},
    ops.Stage: {"source": _BLOCK, "stream": _STREAM},
    ops.Fill: {"slot": _BLOCK, "stream": _STREAM},
    ops.Launch: {"reads": _BLOCK, "writes": _BLOCK, "stream": _STREAM, "instance": _INSTANCE},
    ops.DestroyPool: {"slot": _POOL},
    ops.DestroyStream: {"slot": _STREAM},
    ops.SynchronizeStream: {"slot": _STREAM},
    ops.QueryStream: {"slot": _STREAM},
    ops.DestroyEvent: {"slot": _EVENT},
    ops.RecordEvent: {"slot": _EVENT, "stream": _STREAM},
    ops.WaitEvent: {"slot": _EVENT, "stream": _STREAM},
    ops.QueryEvent: {"slot": _EVENT},
    ops.SynchronizeEvent: {"slot": _EVENT},
    ops.Stall: {"slot": _STREAM},
    ops.Release: {"slot": _STREAM},
    ops.BeginCapture: {"stream": _STREAM},
    ops.EndCapture: {"stream": _STREAM},
    ops.LaunchGraph: {"slot": _GRAPH, "stream": _STREAM},
    ops.DestroyGraph: {"slot": _GRAPH},
    ops.CreateInstance: {"stream": _STREAM},
    ops.DestroyInstance: {"slot": _INSTANCE},
    ops.Partition: {"instance": _INSTANCE},
    ops.CreatePolicy: {"instance": _INSTANCE},
    ops.Node: {"parents": _NODE},
    ops.Hold: {"slot": _NODE},
    ops.Drop: {"slot": _NODE},
    ops.Backward: {"slot": _NODE},
}
_ENDING: Final = frozenset(
    {ops.Free, ops.DestroyPool, ops.DestroyStream, ops.DestroyEvent, ops.DestroyGraph, ops.DestroyInstance}
)


def makes_of(operation: Operation) -> tuple[Making, ...]:
    """Return what the operation makes."""
    fields = _MADE.get(type(operation))
    if fields is None:
        return ()
    pool = operation.pool if isinstance(operation, ops.Allocate) else None
    return tuple([Making(slot, kind, pool) for field, kind in fields.items() for slot in _slots(operation, field)])


def uses_of(operation: Operation) -> tuple[Use, ...]:
    """Return the slots that have to be made before the operation."""
    fields = _USED.get(type(operation))
    if fields is None:
        return ()
    return tuple([Use(slot, kind) for field, kind in fields.items() for slot in _slots(operation, field)])


def slots_made(operation: Operation) -> tuple[Slot, ...]:
    """Return the slots that the operation makes, where their kind is of no interest."""
    return _all_slots(operation, _MADE.get(type(operation)))


def slots_used(operation: Operation) -> tuple[Slot, ...]:
    """Return the slots that have to be made before the operation, where their kind is of no interest."""
    return _all_slots(operation, _USED.get(type(operation)))


def ends_of(operation: Operation) -> tuple[Slot, ...]:
    """Return the slots whose thing the operation ends; ``drop`` gives up one hold and ends nothing by itself."""
    return _slots(operation, "slot") if type(operation) in _ENDING else ()


def _all_slots(operation: Operation, fields: Mapping[str, SlotKind] | None) -> tuple[Slot, ...]:
    if fields is None:
        return ()
    slots: list[Slot] = []
    for field in fields:
        value: Slot | tuple[Slot, ...] | None = getattr(operation, field)
        if isinstance(value, str):
            slots.append(value)
        elif value:
            slots.extend(value)
    return tuple(slots)


def _slots(operation: Operation, field: str) -> tuple[Slot, ...]:
    """Return the slots that a field holds: one, several, or none where it may be left out."""
    value: Slot | tuple[Slot, ...] | None = getattr(operation, field)
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value
