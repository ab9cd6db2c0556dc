"""Other bodies that may fail alike: one large block instead of many small ones, one thing instead of two, no loop.

Each may be longer or larger in some way than what it came from; shrinking takes it only where lines are saved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final

from quiesce import operations as ops
from quiesce.backend import DeviceProfile
from quiesce.cases.case import Case, ExpectGrowth, Repeat, Request, Statement
from quiesce.cases.effects import Making, SlotKind, makes_of, uses_of
from quiesce.cases.expansion import PerformStep, expand
from quiesce.generation.editing import Body, keep, leaves, makings, read, rename, replace_at, requests, select, size_of
from quiesce.generation.simplification import simpler_sizes
from quiesce.operations import MemoryKind, Operation, Slot
from quiesce.request_format import format_request

_ALIKE_MIN: Final = 3
_MULTIPLES: Final = (16, 8, 4, 2)
_MEASURED_ITERATIONS: Final = (4, 6, 8, 12, 16, 24, 32)
_UNROLLED_MAX: Final = 400


def larger_bodies(body: Body, device: DeviceProfile, chunk_bytes: int) -> Iterator[Body]:
    """Yield bodies in which all allocations of one size, or a single one, are larger."""
    allocations = [(position, each) for position, each in requests(body) if isinstance(each, ops.Allocate)]
    sizes = Counter(allocation.size_bytes for _, allocation in allocations)
    for size, count in sizes.items():
        if count >= _ALIKE_MIN:
            alike = [(position, each) for position, each in allocations if each.size_bytes == size]
            for multiple in _MULTIPLES:
                larger = body
                for position, each in alike:
                    larger = replace_at(larger, position, replace(each, size_bytes=size * multiple))
                yield larger
    for position, each in allocations:
        pinned = each.kind is MemoryKind.PINNED
        whole = device.pinned_capacity_bytes if pinned else device.capacity_bytes
        for size in (whole, whole * 3 // 4, whole // 2, whole * 3 // 8, whole // 4, chunk_bytes, 2 << 20):
            if size > each.size_bytes:
                yield replace_at(body, position, replace(each, size_bytes=size))


def smaller_bodies(body: Body) -> Iterator[Body]:
    """Yield bodies in which all allocations of one size are smaller: it may matter that they are alike."""
    allocations = [(position, each) for position, each in requests(body) if isinstance(each, ops.Allocate)]
    sizes = Counter(allocation.size_bytes for _, allocation in allocations)
    for size in (size for size, count in sizes.items() if count > 1):
        for simpler in (each for each in simpler_sizes(size) if each < size):
            smaller = body
            for position, each in allocations:
                if each.size_bytes == size:
                    smaller = replace_at(smaller, position, replace(each, size_bytes=simpler))
            yield smaller


def made_later(body: Body, slot: Slot) -> Body:
    """Return the body with a block made just before it is first named, or at the end.

    Where it takes a number of requests behind another one, a block that was made before it then counts twice.
    """
    making: Statement | None = None
    moved: list[Statement] = []
    for statement in body:
        operation = read(statement) if isinstance(statement, Request) else None
        if isinstance(operation, ops.Allocate) and operation.slot == slot:
            making = statement
            continue
        if making is not None and (operation is None or any(use.slot == slot for use in uses_of(operation))):
            moved.append(making)
            making = None
        moved.append(statement)
    return tuple(moved) if making is None else (*moved, making)


def staged_bodies(body: Body) -> Iterator[Body]:
    """Yield bodies in which a block is staged that was made, and then copied to before it was used."""
    made: dict[Slot, int] = {}
    for position, operation in requests(body):
        if isinstance(operation, ops.Copy) and operation.destination in made:
            staged = ops.Stage(operation.destination, operation.source, operation.stream)
            copied = replace_at(body, position, staged)
            yield select(copied, set(range(size_of(body))) - {made[operation.destination]})
        for slot, _ in uses_of(operation):
            made.pop(slot, None)
        if isinstance(operation, ops.Allocate):
            made[operation.slot] = position


def merged_bodies(body: Body, later: Making, earlier: Making) -> Iterator[Body]:
    """Yield bodies in which one thing does the work of two; a block once in its own size and once in the size of both.

    What was made twice is made and freed once.
    """
    makers = dict(_makers(body))
    if later.slot not in makers or earlier.slot not in makers:
        return
    (gone, second), (_, first) = makers[later.slot], makers[earlier.slot]
    merged = rename(select(body, set(range(size_of(body))) - {gone}), {later.slot: earlier.slot})
    frees = [at for at, each in requests(merged) if isinstance(each, ops.Free) and each.slot == earlier.slot]
    merged = keep(merged, set(range(size_of(merged))).difference(frees[:-1]))
    yield merged
    if isinstance(first, ops.Allocate) and isinstance(second, ops.Allocate):
        both = replace(first, size_bytes=first.size_bytes + second.size_bytes)
        yield from (replace_at(merged, at, both) for at, each in requests(merged) if each == first)
        yield keep(_enlarged(body, first, both), set(range(size_of(body))) - {gone})


def _enlarged(body: Body, before: Operation, after: Operation) -> Body:
    for position, operation in requests(body):
        if operation == before:
            return replace_at(body, position, after)
    return body


def loopless_body(case: Case) -> Body | None:
    """Return the body with every repeat written out, or None where there is no repeat, or too much of it."""
    if not any(isinstance(statement, Repeat) for statement in case.body):
        return None
    steps = [step for step in expand(case) if isinstance(step, PerformStep)]
    if len(steps) > _UNROLLED_MAX:
        return None
    body: Body = tuple(Request(format_request(step.operation), step.expected, step.line) for step in steps)
    taken = {making.slot for making in makings(body)}
    names = {slot: _plain(slot, taken) for slot in sorted(taken) if "[" in slot}
    return rename(body, names)


def _plain(slot: Slot, taken: set[Slot]) -> Slot:
    """Return an indexed slot's name without brackets, which no other slot has."""
    name = re.sub(r"\W+", "_", slot).strip("_")
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def shorter_loops(body: Body) -> Iterator[Body]:
    """Yield bodies with fewer iterations of a repeat, the fewest first; warm-up stays as long as it was."""
    for position, statement in enumerate(body):
        if isinstance(statement, Repeat):
            following = body[position + 1] if position + 1 < len(body) else None
            warm_up = following.after if isinstance(following, ExpectGrowth) else 0
            for measured in _MEASURED_ITERATIONS:
                if warm_up + measured < statement.count:
                    shorter = replace(statement, count=warm_up + measured)
                    yield (*body[:position], shorter, *body[position + 1 :])


def _makers(body: Body) -> Iterator[tuple[Slot, tuple[int, Operation]]]:
    for position, statement in enumerate(leaves(body)):
        operation = read(statement) if isinstance(statement, Request) else None
        if operation is not None and isinstance(statement, Request) and " = " in statement.template:
            yield statement.template.partition(" = ")[0], (position, operation)


def bodies_without(body: Body) -> Iterator[Body]:
    """Yield bodies in which a stream or a pool is not made, and everything that named it goes to the default one."""
    for making in makings(body):
        if making.kind in (SlotKind.STREAM, SlotKind.POOL):
            yield _without(body, making.slot)


def _without(body: Body, slot: Slot) -> Body:
    changed: list[Statement] = []
    for statement in body:
        operation = read(statement) if isinstance(statement, Request) else None
        if isinstance(statement, Repeat):
            if inner := _without(statement.body, slot):
                changed.append(replace(statement, body=inner))
        elif not isinstance(statement, Request) or operation is None:
            changed.append(statement)
        elif (spared := _spared(operation, slot)) is not None:
            changed.append(statement if spared == operation else replace(statement, template=format_request(spared)))
    return tuple(changed)


def _spared(operation: Operation, slot: Slot) -> Operation | None:
    """Return an operation that does without a slot; None where it is about that slot."""
    changes: dict[str, Any] = {
        field.name: None
        for field in fields(operation)
        if field.default is None and getattr(operation, field.name) == slot
    }
    spared = replace(operation, **changes)
    named = {making.slot for making in makes_of(spared)} | {used for used, _ in uses_of(spared)}
    return None if slot in named else spared
