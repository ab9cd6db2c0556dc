"""Edits on the body of a case: keep some lines, rename slots, put another request in a line's place."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import TypeAlias

from quiesce.allocators.cases import (
    FOREIGN_SLOT,
    ExpectGauge,
    ExpectGrowth,
    Making,
    Repeat,
    Request,
    SlotKind,
    Statement,
    ends_of,
    makes_of,
    slots_made,
    slots_used,
    uses_of,
)
from quiesce.model.operations import Mark, Operation, Slot
from quiesce.model.requests import RequestError, format_request, parse_request

Body: TypeAlias = tuple[Statement, ...]


def leaves(body: Body) -> Iterator[Statement]:
    """Yield the statements that are no repeats, in their order."""
    for statement in body:
        if isinstance(statement, Repeat):
            yield from leaves(statement.body)
        else:
            yield statement


def read(request: Request) -> Operation | None:
    """Return the operation of a request that mentions no loop variable, else None."""
    return _parse(request.template)


def requests(body: Body) -> Iterator[tuple[int, Operation]]:
    """Yield the operations that mention no loop variable, and the positions of their leaves."""
    for position, statement in enumerate(leaves(body)):
        operation = read(statement) if isinstance(statement, Request) else None
        if operation is not None:
            yield position, operation


def size_of(body: Body) -> int:
    """Return the number of leaves."""
    return sum(1 for _ in leaves(body))


@lru_cache(maxsize=65536)
def _parse(template: str) -> Operation | None:
    try:
        return parse_request(template)
    except RequestError:
        return None


@lru_cache(maxsize=4096)
def _first_iteration(template: str) -> Operation | None:
    """Return the operation of a template in the first iteration of every loop."""
    try:
        return parse_request(template, dict.fromkeys(re.findall(r"[A-Za-z_]\w*", template), 0))
    except RequestError:
        return None


def keep(body: Body, kept: Collection[int]) -> Body:
    """Keep the leaves whose positions are ``kept``, and of these only what still has what it refers to."""
    return _tidied(select(body, kept), set(), set())


def select(body: Body, kept: Collection[int]) -> Body:
    """Keep the leaves whose positions are ``kept``, whether or not what they refer to is still made."""
    return _selected(body, kept, [0])


def _selected(body: Body, kept: Collection[int], position: list[int]) -> Body:
    selected: list[Statement] = []
    for statement in body:
        if isinstance(statement, Repeat):
            inner = _selected(statement.body, kept, position)
            if inner:
                selected.append(replace(statement, body=inner))
            continue
        if position[0] in kept:
            selected.append(statement)
        position[0] += 1
    return tuple(selected)


def _tidied(body: Body, made: set[Slot], marks: set[str]) -> Body:
    tidy: list[Statement] = []
    for statement in body:
        match statement:
            case Repeat():
                inner = _tidied(statement.body, made, marks)
                if inner:
                    tidy.append(replace(statement, body=inner))
            case Request(template):
                operation = _parse(template) or _first_iteration(template)
                if operation is None or all(slot in made or slot == FOREIGN_SLOT for slot, _ in uses_of(operation)):
                    tidy.append(statement)
                    if operation is not None:
                        made.update(making.slot for making in makes_of(operation))
                    if isinstance(operation, Mark):
                        marks.add(operation.name)
            case ExpectGauge(mark=mark):
                if mark is None or mark in marks:
                    tidy.append(statement)
            case ExpectGrowth():
                if tidy and isinstance(tidy[-1], Repeat | ExpectGrowth):
                    tidy.append(statement)
    return tuple(tidy)


def makings(body: Body) -> list[Making]:
    """Return what the requests outside loops make, in their order."""
    operations = (read(statement) for statement in body if isinstance(statement, Request))
    return [making for operation in operations if operation is not None for making in makes_of(operation)]


def replace_at(body: Body, position: int, operation: Operation) -> Body:
    """Put an operation in the place of the request at a leaf's position."""
    return _replaced(body, position, format_request(operation), [0])


def _replaced(body: Body, position: int, template: str, seen: list[int]) -> Body:
    changed: list[Statement] = []
    for statement in body:
        if isinstance(statement, Repeat):
            changed.append(replace(statement, body=_replaced(statement.body, position, template, seen)))
            continue
        hit = seen[0] == position
        changed.append(replace(statement, template=template) if hit and isinstance(statement, Request) else statement)
        seen[0] += 1
    return tuple(changed)


def rename(body: Body, names: Mapping[Slot, Slot]) -> Body:
    """Give slots other names, all at once. Requests that mention a loop variable keep theirs."""
    renamed: list[Statement] = []
    for statement in body:
        operation = read(statement) if isinstance(statement, Request) else None
        if isinstance(statement, Repeat):
            renamed.append(replace(statement, body=rename(statement.body, names)))
        elif isinstance(statement, Request) and operation is not None and not isinstance(operation, Mark):
            renamed.append(replace(statement, template=format_request(_with_names(operation, names))))
        else:
            renamed.append(statement)
    return tuple(renamed)


def _with_names(operation: Operation, names: Mapping[Slot, Slot]) -> Operation:
    changes: dict[str, Slot | tuple[Slot, ...]] = {}
    for field in fields(operation):
        value = getattr(operation, field.name)
        if type(value) is str:  # an enumeration's word is no slot
            changes[field.name] = names.get(value, value)
        elif isinstance(value, tuple):
            changes[field.name] = tuple(names.get(slot, slot) for slot in value)
    return replace(operation, **changes)  # type: ignore[arg-type]


def numbered(body: Body, first: int = 1) -> Body:
    """Number the lines from ``first``, one after the other."""
    return _numbered(body, [first])


def _numbered(body: Body, line: list[int]) -> Body:
    done: list[Statement] = []
    for statement in body:
        here, line[0] = line[0], line[0] + 1
        if isinstance(statement, Repeat):
            done.append(replace(statement, line=here, body=_numbered(statement.body, line)))
        else:
            done.append(replace(statement, line=here))
    return tuple(done)


NAMES: Mapping[SlotKind, str] = {
    SlotKind.BLOCK: "abcd",
    SlotKind.STREAM: "stuv",
    SlotKind.EVENT: "ef",
    SlotKind.POOL: "pq",
    SlotKind.GRAPH: "gh",
    SlotKind.INSTANCE: "xyz",
    SlotKind.NODE: "nmkl",
}
_GENERATED = re.compile(r"[a-z][0-9]+\Z")


def with_short_names(body: Body) -> Body:
    """Rename what the generator named: the first blocks are ``a`` and ``b``, the first stream ``s``."""
    names: dict[Slot, Slot] = {}
    counts: dict[SlotKind, int] = {}
    taken = {making.slot for making in makings(body)}
    for making in makings(body):
        if _GENERATED.match(making.slot) and making.slot not in names:
            number = counts.get(making.kind, 0)
            while (short := _short(making.kind, number)) in taken and not _GENERATED.match(short):
                number += 1
            counts[making.kind] = number + 1
            names[making.slot] = short
    return rename(body, names)


def _short(kind: SlotKind, number: int) -> Slot:
    letters = NAMES[kind]
    return letters[number] if number < len(letters) else f"{letters[0]}{number}"


def alike(body: Body) -> tuple[Hashable, ...]:
    """Return the same for two bodies that differ in nothing but the names of their slots.

    A body with a loop is like none but itself: a loop makes slots whose names stand nowhere.
    """
    if any(isinstance(statement, Repeat) for statement in body):
        return body
    numbers: dict[Slot, Slot] = {FOREIGN_SLOT: FOREIGN_SLOT}
    return tuple(_renumbered(statement, numbers) for statement in body)


def _renumbered(statement: Statement, numbers: dict[Slot, Slot]) -> Hashable:
    slots = _slots(statement.template) if isinstance(statement, Request) else ()
    if not isinstance(statement, Request) or not slots:
        return statement
    names = tuple([numbers.setdefault(slot, f"x{len(numbers)}") for slot in slots])
    return _with_slots(statement.template, names), statement.expected


@lru_cache(maxsize=65536)
def _slots(template: str) -> tuple[Slot, ...]:
    operation = _parse(template)
    if operation is None or isinstance(operation, Mark):
        return ()
    return tuple(dict.fromkeys((*slots_made(operation), *slots_used(operation), *ends_of(operation))))


@lru_cache(maxsize=65536)
def _with_slots(template: str, names: tuple[Slot, ...]) -> str:
    renamed = dict(zip(_slots(template), names, strict=True))
    return format_request(_with_names(parse_request(template), renamed))
