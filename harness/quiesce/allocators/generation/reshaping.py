"""Other cases that may fail alike, for shrinking: simpler things, other bodies, smaller devices.

One large block instead of many small ones, one thing instead of two, no loop. Fewer requests fill a smaller device.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, Final

from quiesce.allocators.cases import (
    Case,
    ExpectGrowth,
    Making,
    PerformStep,
    Repeat,
    Request,
    SlotKind,
    Statement,
    expand,
    makes_of,
    uses_of,
)
from quiesce.allocators.generation.editing import (
    Body,
    keep,
    leaves,
    makings,
    read,
    rename,
    replace_at,
    requests,
    select,
    size_of,
)
from quiesce.model import operations as ops
from quiesce.model.backend import DeviceProfile
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.requests import format_request

_NICE_SIZES: Final = (1, 512, 4 << 10, 64 << 10, 1 << 20, 2 << 20, 16 << 20, 64 << 20)
_UNITS: Final = (1 << 20, 1 << 10, 512)


def simpler_operations(operation: Operation) -> Iterator[Operation]:
    """Yield variants of an operation with one option at its default, then with a smaller or rounder size."""
    for field in fields(operation):
        if field.default is not MISSING and getattr(operation, field.name) != field.default:
            default: Any = field.default
            yield replace(operation, **{field.name: default})
    match operation:
        case ops.Allocate(size_bytes=size):
            if operation.kind is MemoryKind.PINNED:
                yield replace(operation, kind=MemoryKind.PAGEABLE)
            yield from (replace(operation, size_bytes=nice) for nice in simpler_sizes(size))
        case ops.Stage(slot=slot, stream=stream):
            yield ops.Allocate(slot, 1, stream=stream)  # which needs no source
        case ops.Launch(reads=reads, writes=writes):
            if reads and not writes:
                yield replace(operation, reads=(), writes=reads)
            if len(writes) > 1:
                yield from (replace(operation, writes=(slot,)) for slot in writes)
        case ops.Node(parents=parents) if len(parents) > 1:
            yield from (replace(operation, parents=(slot,)) for slot in parents)
        case ops.Fill(value=value) if value:
            yield replace(operation, value=0)
        case _:
            pass


def simpler_sizes(size_bytes: int) -> Iterator[int]:
    """Yield smaller sizes, the nicest first, then the size rounded to whole units."""
    yield from (nice for nice in _NICE_SIZES if nice < size_bytes)
    for unit in _UNITS:
        if size_bytes > unit and size_bytes % unit:  # a small size rounded up would be simplified in circles
            yield from (size_bytes // unit * unit, -(-size_bytes // unit) * unit)


def simpler_devices(device: DeviceProfile) -> Iterator[DeviceProfile]:
    """Yield the default device, then ones that differ from it in less."""
    default = DeviceProfile()
    yield default
    for field in fields(device):
        if getattr(device, field.name) != getattr(default, field.name):
            value: Any = getattr(default, field.name)
            yield replace(device, **{field.name: value})


_ALIKE_MIN: Final = 3
_MULTIPLES: Final = (16, 8, 4, 2)
_MEASURED_ITERATIONS: Final = (4, 6, 8, 12, 16, 24, 32)
_UNROLLED_MAX: Final = 400


def larger_bodies(body: Body, device: DeviceProfile, chunk_bytes: int) -> Iterator[Body]:
    """Yield bodies in which all allocations of one size, or a single one, are larger."""
    asked = list(allocations(body))
    sizes = Counter(allocation.size_bytes for _, allocation in asked)
    for size, count in sizes.items():
        if count >= _ALIKE_MIN:
            alike = [(position, each) for position, each in asked if each.size_bytes == size]
            for multiple in _MULTIPLES:
                larger = body
                for position, each in alike:
                    larger = replace_at(larger, position, replace(each, size_bytes=size * multiple))
                yield larger
    for position, each in _last_of_neighbours(body):
        pinned = each.kind is MemoryKind.PINNED
        whole = device.pinned_capacity_bytes if pinned else device.capacity_bytes
        for size in (whole, whole * 3 // 4, whole // 2, whole * 3 // 8, whole // 4, chunk_bytes, 2 << 20):
            if size > each.size_bytes:
                yield replace_at(body, position, replace(each, size_bytes=size))


def _last_of_neighbours(body: Body) -> list[tuple[int, ops.Allocate]]:
    """Return the allocations; of neighbours that are alike and never used the last alone: each would fill as much."""
    used = {use.slot for _, operation in requests(body) for use in uses_of(operation)}
    asked = list(allocations(body))
    followed = {
        position
        for (position, each), (after, following) in itertools.pairwise(asked)
        if after == position + 1
        and replace(following, slot=each.slot) == each
        and used.isdisjoint((each.slot, following.slot))
    }
    return [(position, each) for position, each in asked if position not in followed]


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


_ROOM_BLOCKS: Final = (1, 2, 4)
_PARTS_LEFT: Final = (2, 4, 16)
"""A small block may hold a large chunk: without it, a half of the device may fill as it did before, or less."""


def tight_cases(case: Case) -> Iterator[Case]:
    """Yield cases whose device has room for a few blocks of their largest size, or of that which most blocks have.

    All blocks come again, or of those that nothing else is done with as many as there is room for, or one more or less.
    """
    asked = [allocation for _, allocation in allocations(case.body)]
    if not asked:
        return
    sizes = [allocation.size_bytes for allocation in asked]
    most_frequent = Counter(sizes).most_common(1)[0][0]
    for room in _ROOM_BLOCKS:
        for size in dict.fromkeys((most_frequent, max(sizes))):
            for footprint_bytes in _footprints([size], case.device.granularity_bytes):
                capacity = room * footprint_bytes
                if 0 < capacity < case.device.capacity_bytes:
                    tight = replace(case, device=replace(case.device, capacity_bytes=capacity))
                    yield tight
                    for count in (room - 1, room, room + 1):
                        yield replace(tight, body=_with_fewer_fillers(case.body, size, count))


def cases_without(case: Case, positions: Collection[int], blocks: Sequence[ops.Allocate]) -> Iterator[Case]:
    """Yield cases that lack some blocks, allocated at these positions, and the room for them or for what held them."""
    body = keep(case.body, set(range(size_of(case.body))).difference(positions))
    pinned = any(block.kind is MemoryKind.PINNED for block in blocks)
    whole = case.device.pinned_capacity_bytes if pinned else case.device.capacity_bytes
    granularity = case.device.granularity_bytes
    footprints = [*_footprints([block.size_bytes for block in blocks], granularity)]
    for footprint_bytes in (*footprints, *(whole - whole // part // granularity * granularity for part in _PARTS_LEFT)):
        device = _with_less(case.device, footprint_bytes, pinned=pinned)
        if device is not None:
            yield replace(case, body=body, device=device)


def allocations(body: Body) -> Iterator[tuple[int, ops.Allocate]]:
    """Yield the allocations and the positions of their leaves."""
    return ((position, asked) for position, asked in requests(body) if isinstance(asked, ops.Allocate))


def _with_fewer_fillers(body: Body, size_bytes: int, count: int) -> Body:
    """Keep of the blocks that nothing is done with but to allocate them the last few of one size, and the very last."""
    used = {use.slot for _, operation in requests(body) for use in uses_of(operation)}
    fillers = [(position, asked.size_bytes) for position, asked in allocations(body) if asked.slot not in used]
    gone = [position for position, size in fillers[:-1] if size != size_bytes]
    alike = [position for position, size in fillers[:-1] if size == size_bytes]
    return keep(body, set(range(size_of(body))).difference(gone, alike[: max(0, len(alike) - count)]))


def _with_less(device: DeviceProfile, room_bytes: int, *, pinned: bool) -> DeviceProfile | None:
    whole = device.pinned_capacity_bytes if pinned else device.capacity_bytes
    if room_bytes >= whole:
        return None
    rest = whole - room_bytes
    return replace(device, pinned_capacity_bytes=rest) if pinned else replace(device, capacity_bytes=rest)


def _footprints(sizes: Sequence[int], granularity_bytes: int) -> Iterator[int]:
    """Yield what blocks take: in whole units, and in classes of powers of two."""
    units = sum(-(-size // granularity_bytes) * granularity_bytes for size in sizes)
    powers = sum(max(granularity_bytes, 1 << (size - 1).bit_length()) for size in sizes if size)
    yield from dict.fromkeys((units, powers))
