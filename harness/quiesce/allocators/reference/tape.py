"""The autodiff tape: nodes, their parents, and who can still reach them.

A node lives while it is held or while a living node may still need it in a backward pass. A backward pass consumes
the edges it walks. Counting references frees a node at the moment its last reason goes, at a cost that depends on
what is freed and never on how much is kept (upstream: burn#2487).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from quiesce.allocators.reference.ledger import CallRejected, Ledger
from quiesce.model.outcomes import INVALID_VALUE


class Tape(Protocol):
    """What the machine asks of a tape. Every method raises :class:`CallRejected` for a node that is not held."""

    def node(self, name: str, parents: tuple[str, ...]) -> None:
        """Add a node, held once."""

    def hold(self, name: str) -> None:
        """Hold a node once more."""

    def drop(self, name: str) -> None:
        """Give one hold up."""

    def backward(self, name: str) -> None:
        """Run the backward pass from a node."""

    def collect(self) -> None:
        """Free what nobody can reach."""

    def count(self) -> int:
        """Return how many nodes are kept."""


@dataclass(slots=True, eq=False)
class _Node:
    parents: tuple[_Node, ...]
    holds: int = 1
    children: int = 0


class CountingTape:
    """The tape by reference counts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._held: dict[str, _Node] = {}
        self._count = 0

    def node(self, name: str, parents: tuple[str, ...]) -> None:
        """Add a node, held once."""
        above = tuple(self._require(parent) for parent in parents)
        for parent in above:
            self._ledger.step()
            parent.children += 1
        self._held[name] = _Node(above)
        self._count += 1

    def hold(self, name: str) -> None:
        """Hold a node once more."""
        self._require(name).holds += 1

    def drop(self, name: str) -> None:
        """Give one hold up."""
        node = self._require(name)
        node.holds -= 1
        if not node.holds:
            del self._held[name]
            self._free_unreachable([node])

    def backward(self, name: str) -> None:
        """Consume every edge above a node."""
        walk = [self._require(name)]
        while walk:
            node = walk.pop()
            parents, node.parents = node.parents, ()
            for parent in parents:
                self._ledger.step()
                parent.children -= 1
                walk.append(parent)
            if not node.holds and not node.children:
                self._count -= 1
                node.holds = -1  # counted once, however many edges led here

    def collect(self) -> None:
        """Nothing to do: nothing unreachable is ever kept."""

    def count(self) -> int:
        """Return how many nodes are kept."""
        return self._count

    def _require(self, name: str) -> _Node:
        node = self._held.get(name)
        if node is None:
            raise CallRejected(INVALID_VALUE)
        return node

    def _free_unreachable(self, candidates: list[_Node]) -> None:
        while candidates:
            node = candidates.pop()
            self._ledger.step()
            if node.holds or node.children:
                continue
            self._count -= 1
            for parent in node.parents:
                parent.children -= 1
                candidates.append(parent)
            node.parents = ()
            node.holds = -1  # freed: a second edge to it must not free it again
