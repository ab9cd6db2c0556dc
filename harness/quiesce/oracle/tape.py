"""What the oracle knows of the autodiff tape: which nodes somebody can still reach."""

from __future__ import annotations

from dataclasses import dataclass

from quiesce import operations as ops
from quiesce.operations import Operation, Slot


@dataclass(slots=True, eq=False)
class NodeState:
    """One node: its holds, and the parents that a backward pass from it would walk."""

    parents: tuple[NodeState, ...]
    holds: int = 1


class TapeModel:
    """Held nodes and what they lead to. Counting walks the graph: it is asked at ``collect`` only."""

    def __init__(self) -> None:
        self.held: dict[Slot, NodeState] = {}

    def apply(self, operation: Operation) -> None:
        """Enter a tape operation that was done."""
        match operation:
            case ops.Node(slot, parents):
                self.held[slot] = NodeState(tuple(self.held[parent] for parent in parents if parent in self.held))
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
            case _:
                pass

    def reachable(self) -> int:
        """Return how many nodes are held or lead to a held node's gradient."""
        seen: set[int] = set()
        walk = list(self.held.values())
        while walk:
            node = walk.pop()
            if id(node) not in seen:
                seen.add(id(node))
                walk.extend(node.parents)
        return len(seen)
