"""The control flow of a function that is widened: its blocks in order, and its loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quiesce.simulator.kernels.widening.text import Function, NotUnderstood

_BLOCKS_MAX: Final = 600
"""A function with more blocks is not widened: that would take seconds."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Which blocks follow which, and the blocks of each loop by the block that it begins with."""

    entry: str
    successors: dict[str, tuple[str, ...]]
    predecessors: dict[str, tuple[str, ...]]
    loops: dict[str, frozenset[str]]
    order: tuple[str, ...]
    """Each block after those that come before it, apart from rounds of loops."""

    def goes_back(self, block: str, target: str) -> bool:
        """Say whether an edge begins another round of a loop."""
        return block in self.loops.get(target, frozenset())

    def around(self, block: str) -> list[str]:
        """Return where the loops begin that a block is in."""
        return [header for header, inside in self.loops.items() if block in inside]

    def forward(self, block: str) -> list[str]:
        """Return the blocks that follow a block in the same round."""
        return [each for each in self.successors[block] if not self.goes_back(block, each)]

    def before(self, block: str) -> list[str]:
        """Return the blocks before a block, without rounds of the loop that it begins."""
        return [each for each in self.predecessors[block] if not self.goes_back(each, block)]

    def after(self, blocks: list[str]) -> set[str]:
        """Return blocks and all that can follow them in the same round."""
        found: set[str] = set()
        waiting = list(blocks)
        while waiting:
            block = waiting.pop()
            if block not in found:
                found.add(block)
                waiting += self.forward(block)
        return found


def flow_of(function: Function) -> Flow:
    """Return the control flow. Raises NotUnderstood for loops that can be entered at several places."""
    successors = {name: tuple(dict.fromkeys(lines[-1].labels)) for name, lines in function.blocks.items()}
    if len(successors) > _BLOCKS_MAX:
        raise NotUnderstood(f"{len(successors)} blocks")
    predecessors: dict[str, list[str]] = {name: [] for name in successors}
    for name, following in successors.items():
        for each in following:
            predecessors[each].append(name)
    entry = next(iter(successors))
    order = _order(entry, successors)
    if len(order) != len(successors):
        raise NotUnderstood("a block that nobody comes to")
    loops = _loops(order, successors, predecessors)
    return Flow(entry, successors, {name: tuple(listed) for name, listed in predecessors.items()}, loops, order)


def _order(entry: str, successors: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the blocks in reverse postorder."""
    ended: list[str] = []
    seen = {entry}
    waiting = [(entry, list(reversed(successors[entry])))]
    while waiting:
        block, left = waiting[-1]
        if not left:
            ended.append(block)
            waiting.pop()
            continue
        following = left.pop()
        if following not in seen:
            seen.add(following)
            waiting.append((following, list(reversed(successors[following]))))
    return tuple(reversed(ended))


def _loops(
    order: tuple[str, ...], successors: dict[str, tuple[str, ...]], predecessors: dict[str, list[str]]
) -> dict[str, frozenset[str]]:
    dominators = _dominators(order, predecessors)
    places = {block: place for place, block in enumerate(order)}
    loops: dict[str, set[str]] = {}
    for block in order:
        for target in successors[block]:
            if places[target] > places[block]:
                continue
            if target not in dominators[block]:
                raise NotUnderstood("a loop with several entries")
            inside = loops.setdefault(target, {target})
            waiting = [block]
            while waiting:
                each = waiting.pop()
                if each not in inside:
                    inside.add(each)
                    waiting += predecessors[each]
    return {header: frozenset(inside) for header, inside in loops.items()}


def _dominators(order: tuple[str, ...], predecessors: dict[str, list[str]]) -> dict[str, set[str]]:
    """Return for each block those that every way to it goes through."""
    found = {block: set(order) for block in order}
    found[order[0]] = {order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = set.intersection(*(found[each] for each in predecessors[block])) | {block}
            if new != found[block]:
                found[block], changed = new, True
    return found
