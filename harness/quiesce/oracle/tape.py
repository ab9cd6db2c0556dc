"""What the oracle knows of the autodiff tape: which nodes somebody can still reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quiesce import operations as ops
from quiesce.operations import Operation, Slot


@dataclass(slots=True, eq=False)
class NodeState:
    """One node: its holds, the parents that a backward pass from it would walk, and whether one walked it already."""

    parents: tuple[NodeState, ...]
    holds: int = 1
    is_leaf: bool = False
    is_consumed: bool = False


class TapeModel:
    """Held nodes and what they lead to. Walks of the graph are asked for at ``collect`` and ``backward`` only."""

    def __init__(self) -> None:
        self.held: dict[Slot, NodeState] = {}
        self.was_used = False
        """Whether there was ever a node."""

    def apply(self, operation: Operation) -> None:
        """Enter a tape operation that was done."""
        match operation:
            case ops.Node(slot, parents):
                self.was_used = True
                above = tuple(self.held[parent] for parent in parents if parent in self.held)
                self.held[slot] = NodeState(above, is_leaf=not parents)
            case ops.Hold(slot) if slot in self.held:
                self.held[slot].holds += 1
            case ops.Drop(slot) if slot in self.held:
                self.held[slot].holds -= 1
                if not self.held[slot].holds:
                    del self.held[slot]
            case ops.Backward(slot) if slot in self.held:
                walk = [self.held[slot]]
                while walk:
                    node = walk.pop()
                    walk.extend(node.parents)
                    node.parents = ()
                    node.is_consumed = True
            case _:
                pass

    def may_refuse(self, slot: Slot) -> bool:
        """Whether a backward pass from a held node needs what an earlier pass consumed.

        A tape that keeps nothing for a second pass says so (burn-autodiff panics, PyTorch raises an error). A leaf has
        nothing to keep, and stays good for any number of passes from the nodes below it.
        """
        root = self.held[slot]
        if root.is_consumed:
            return True
        return any(node.is_consumed and not node.is_leaf for node in _walk(root.parents))

    def reachable(self) -> int:
        """Return how many nodes are held or lead to a held node's gradient."""
        return sum(1 for _ in _walk(self.held.values()))


def _walk(nodes: Iterable[NodeState]) -> Iterator[NodeState]:
    """Yield these nodes and all that they lead to, each once."""
    seen: set[int] = set()
    walk = list(nodes)
    while walk:
        node = walk.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            walk.extend(node.parents)
