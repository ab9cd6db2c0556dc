"""The loops of a function, as far as each is entered at one block only."""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce.simulator.kernels.translation.control_flow import Flow


@dataclass(frozen=True, slots=True)
class Loop:
    """The blocks of a loop, and those of them that go back to where it begins."""

    header: int
    blocks: frozenset[int]
    backs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """The blocks of a function, each after those before it apart from ways back, and its loops by their headers."""

    blocks: tuple[int, ...]
    sources: dict[int, tuple[int, ...]]
    loops: dict[int, Loop] = field(default_factory=dict)


def order_of(flow: Flow) -> Order | None:
    """Return the order of the blocks that are reached; None where a loop is entered at several blocks."""
    blocks = _in_order(flow)
    places = {block: place for place, block in enumerate(blocks)}
    sources: dict[int, list[int]] = {block: [] for block in blocks}
    for block in blocks:
        for target in dict.fromkeys(flow.blocks[block].successors):
            sources[target].append(block)
    above = _dominators(blocks, sources)
    backs: dict[int, list[int]] = {}
    for target in blocks:
        for source in sources[target]:
            if places[source] < places[target]:
                continue
            if not above[source] >> target & 1:
                return None
            backs.setdefault(target, []).append(source)
    loops = {header: Loop(header, _body(header, ends, sources), tuple(ends)) for header, ends in backs.items()}
    return Order(blocks, {block: tuple(each) for block, each in sources.items()}, loops)


def _in_order(flow: Flow) -> tuple[int, ...]:
    found: list[int] = []
    seen = {0}
    stack = [(0, iter(flow.blocks[0].successors))]
    while stack:
        block, following = stack[-1]
        target = next((each for each in following if each not in seen), None)
        if target is None:
            found.append(block)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(flow.blocks[target].successors)))
    return tuple(reversed(found))


def _dominators(blocks: tuple[int, ...], sources: dict[int, list[int]]) -> dict[int, int]:
    """Return for each block those that every way to it goes through, with itself, as a set of bits."""
    every = sum(1 << block for block in blocks)
    above = dict.fromkeys(blocks, every)
    above[blocks[0]] = 1 << blocks[0]
    changed = True
    while changed:
        changed = False
        for block in blocks[1:]:
            new = every
            for source in sources[block]:
                new &= above[source]
            new |= 1 << block
            changed |= new != above[block]
            above[block] = new
    return above


def _body(header: int, ends: list[int], sources: dict[int, list[int]]) -> frozenset[int]:
    found, waiting = {header}, list(ends)
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += sources[block]
    return frozenset(found)
