"""Slots: which an operation uses, makes and ends, of what kind they are, and static checks of their names.

Every slot and mark is made before it is used, and nothing owned is lost from sight.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from quiesce.allocators.cases.case import (
    ExpectedKind,
    ExpectedOutcome,
    ExpectGauge,
    ExpectGrowth,
    Repeat,
    Request,
    Statement,
)
from quiesce.allocators.cases.expansion import OperationReader, located, mentioned, resolve_expectation, templates_of
from quiesce.allocators.cases.wording import nearest
from quiesce.model import operations as ops
from quiesce.model.errors import CaseError
from quiesce.model.operations import Drop, Finalize, Hold, Mark, Operation, Slot
from quiesce.model.requests import RequestError

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


EXACT_STEPS_MAX: Final = 20_000
"""Up to so many steps the check follows the whole expansion."""
SETTLED_ITERATIONS: Final = 3
"""After so many iterations a block that does not mention its variable leaves every slot as it found it."""

_COUNTING_VERBS = frozenset({"hold", "drop"})


def check_slots(body: Sequence[Statement], path: str) -> None:
    """Raise :class:`CaseError` for the first name that is used wrongly."""
    exact = _steps_to_follow(body) <= EXACT_STEPS_MAX
    _Checker(path, exact).block(body, {})


@dataclass(slots=True)
class _Thing:
    """What a slot stands for: its kind, where it was made, how often the sequence owns it, and its pool."""

    kind: SlotKind
    line: int
    holds: int
    pool: str | None


def _settles(loop: Repeat) -> bool:
    """Whether every iteration of the loop after the first ones finds and leaves the same slots."""
    templates = list(templates_of(loop))
    if any(template.split(maxsplit=1)[0] in _COUNTING_VERBS for template in templates):
        return False
    return not any(mentioned(template, (loop.variable,)) for template in templates)


def _steps_to_follow(body: Sequence[Statement]) -> int:
    steps = 0
    for statement in body:
        if isinstance(statement, Repeat):
            count = min(statement.count, SETTLED_ITERATIONS) if _settles(statement) else statement.count
            steps += count * _steps_to_follow(statement.body)
        else:
            steps += 1
    return steps


class _Checker:
    """Follows the expansion; beyond the limit, the first iterations of every loop.

    What is not followed to its end cannot say which ``a[i]`` exist or how often a node is held, so that then
    all slots ``a[…]`` count as one name, which may be made again, and so may nodes.
    """

    def __init__(self, path: str, exact: bool) -> None:
        self._path = path
        self._exact = exact
        self._things: dict[str, _Thing] = {}
        self._marks: set[str] = set()
        self._settles: dict[int, bool] = {}
        self._operations = OperationReader()

    def block(self, body: Sequence[Statement], variables: Mapping[str, int]) -> None:
        for statement in body:
            match statement:
                case Repeat():
                    for iteration in self._iterations(statement):
                        self.block(statement.body, {**variables, statement.variable: iteration})
                case ExpectGrowth():
                    pass
                case _:
                    self._check(statement, variables)

    def _iterations(self, loop: Repeat) -> range:
        if loop.line not in self._settles:
            self._settles[loop.line] = _settles(loop)
        settled = self._settles[loop.line] or not self._exact
        return range(min(loop.count, SETTLED_ITERATIONS) if settled else loop.count)

    def _check(self, statement: Request | ExpectGauge, variables: Mapping[str, int]) -> None:
        try:
            if isinstance(statement, Request):
                operation = self._operations.read(statement.template, variables)
                self._request(operation, statement.expected, statement.line)
            else:
                self._expectation(resolve_expectation(statement, variables)[0])
        except RequestError as error:
            raise CaseError(self._path, statement.line, located(error.what, variables), error.instead) from error

    def _expectation(self, expectation: ExpectGauge) -> None:
        mark = expectation.mark
        if mark is None or self._key(mark) in self._marks:
            return
        near = nearest(mark, self._marks)
        advice = f"write 'mark {near}'" if near else f"write the line 'mark {mark}' where its reading is taken"
        raise CaseError(self._path, expectation.line, f"there is no mark '{mark}' above this line", advice)

    def _request(self, operation: Operation, expected: ExpectedOutcome | None, line: int) -> None:
        for slot, kind in uses_of(operation):
            self._use(slot, kind, line)
        refused = expected is not None and expected.kind in (ExpectedKind.OUT_OF_MEMORY, ExpectedKind.REJECTED)
        for making in makes_of(operation):
            self._make(making, line, 0 if refused else 1)
        if refused:
            return
        match operation:
            case Mark(name):
                self._marks.add(self._key(name))
            case Hold(slot):
                self._hold(slot, 1)
            case Drop(slot):
                self._hold(slot, -1)
            case Finalize():
                self._end_all([key for key, thing in self._things.items() if thing.kind is SlotKind.INSTANCE])
            case _:
                for slot in ends_of(operation):
                    if slot != FOREIGN_SLOT:
                        self._end(self._key(slot))

    def _key(self, slot: str) -> str:
        return slot if self._exact or "[" not in slot else slot.split("[", 1)[0] + "[]"

    def _use(self, slot: str, kind: SlotKind, line: int) -> None:
        if slot == FOREIGN_SLOT and kind is SlotKind.BLOCK:
            return
        thing = self._things.get(self._key(slot))
        if thing is None:
            near = nearest(slot, [name for name, found in self._things.items() if found.kind is kind])
            advice = f"write '{near}'" if near else f"write {kind.made_by.format(slot=slot)} first"
            raise CaseError(self._path, line, f"no {kind} '{slot}' is made above this line", advice)
        if thing.kind is not kind:
            raise CaseError(
                self._path,
                line,
                f"'{slot}' is {thing.kind.with_article} (line {thing.line}) and this line needs {kind.with_article}",
                f"name {kind.with_article}",
            )

    def _make(self, making: Making, line: int, holds: int) -> None:
        if making.slot == FOREIGN_SLOT:
            what = f"'{FOREIGN_SLOT}' stands for a pointer from elsewhere, which no line makes"
            raise CaseError(self._path, line, what, "name the slot otherwise")
        key = self._key(making.slot)
        before = self._things.get(key)
        countable = self._exact or not (key.endswith("[]") or making.kind is SlotKind.NODE)
        if before is not None and before.holds and countable:
            raise CaseError(
                self._path,
                line,
                f"'{making.slot}' still owns the {before.kind} made in line {before.line}",
                f"{before.kind.ended_by.format(slot=making.slot)} first, or use an index such as "
                f"{making.slot.split('[', 1)[0]}[i]",
            )
        pool = None if making.pool is None else self._key(making.pool)
        self._things[key] = _Thing(making.kind, line, holds, pool)

    def _hold(self, slot: str, change: int) -> None:
        thing = self._things[self._key(slot)]
        thing.holds = max(0, thing.holds + change)

    def _end(self, key: str) -> None:
        pool = key if self._things[key].kind is SlotKind.POOL else None
        self._end_all([key])
        if pool is not None:
            self._end_all([name for name, thing in self._things.items() if thing.pool == pool])

    def _end_all(self, keys: Collection[str]) -> None:
        for key in keys:
            self._things[key].holds = 0
