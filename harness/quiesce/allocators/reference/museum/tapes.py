"""Faults of the autodiff tape: burn-autodiff's graph memory management, release by release (upstream: burn#2487).

These tapes keep a map of nodes and the set of leaves, as burn's ``GraphMemoryManagement`` does, and sweep from the
leaves: what no leaf reaches is found by no sweep.
"""

from __future__ import annotations

from typing import Final

from quiesce.allocators.reference.ledger import CallRejected, Ledger
from quiesce.allocators.reference.tape import CountingTape
from quiesce.allocators.reference.world import Fault, Parts
from quiesce.model.outcomes import INVALID_VALUE


class _SweepingTape:
    """A map of nodes to parents, holds, and leaves. ``orphan_is_free`` decides about a node that no leaf reaches."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.parents: dict[int, tuple[int, ...]] = {}
        self.consumed: set[int] = set()
        self.holds: dict[int, int] = {}
        self.leaves: set[int] = set()
        self._names: dict[str, int] = {}
        self._next = 0

    def node(self, name: str, parents: tuple[str, ...]) -> None:
        above = tuple(self._require(parent) for parent in parents)
        self._next += 1
        self.parents[self._next] = above
        self.holds[self._next] = 1
        self._names[name] = self._next
        self.leaves.difference_update(above)
        self.leaves.add(self._next)

    def hold(self, name: str) -> None:
        self.holds[self._require(name)] += 1

    def drop(self, name: str) -> None:
        node = self._require(name)
        self.holds[node] -= 1
        if not self.holds[node]:
            del self._names[name]

    def backward(self, name: str) -> None:
        root = self._require(name)
        walk = [root]
        while walk:
            node = walk.pop()
            if node in self.parents and node not in self.consumed:
                self.consumed.add(node)
                walk.extend(self.parents[node])
        self.collect()

    def collect(self) -> None:
        """Free what a sweep from the leaves finds unheld, then orphans by the release's rule."""
        for leaf in list(self.leaves):
            self._sweep(leaf)
        for node in list(self.parents):
            self._ledger.step()
            if not self.holds[node] and not self._is_needed(node) and self.orphan_is_free(node):
                self._forget(node)

    def _sweep(self, leaf: int) -> None:
        walk = [leaf]
        while walk:
            node = walk.pop()
            self._ledger.step()
            if node not in self.parents or self._is_needed(node):
                continue
            if node in self.consumed or not self.holds[node]:
                walk.extend(self.parents[node])
            if not self.holds[node]:
                self._forget(node)

    def _is_needed(self, node: int) -> bool:
        return any(node in above and child not in self.consumed for child, above in self.parents.items())

    def _forget(self, node: int) -> None:
        del self.parents[node], self.holds[node]
        self.leaves.discard(node)
        self.consumed.discard(node)

    def orphan_is_free(self, node: int) -> bool:
        return not any(parent in self.parents for parent in self.parents[node])

    def count(self) -> int:
        return len(self.parents)

    def _require(self, name: str) -> int:
        node = self._names.get(name)
        if node is None:
            raise CallRejected(INVALID_VALUE)
        return node


class _NeverCollects(_SweepingTape):
    """Before burn 0.15: what took part in a backward pass stays for good."""

    def collect(self) -> None:
        for node in sorted(self.parents, reverse=True):
            if node not in self.consumed and not self.holds[node] and not self._is_needed(node):
                self._forget(node)


class _OrphansWithParents(_SweepingTape):
    """burn 0.15: an orphan is freed only if its parent list is empty, even where the parents are long gone."""

    def orphan_is_free(self, node: int) -> bool:
        return not self.parents[node]


class _LongLivedParent(_SweepingTape):
    """burn 0.16: an orphan is freed once no parent is present, and a tracked tensor's never is absent."""


class _DrainsOneLevel(_SweepingTape):
    """burn 0.15 and 0.16: a dead chain that no leaf reaches loses one level for each call."""

    def collect(self) -> None:
        for node in list(self.parents):
            if not self.holds[node] and not self._is_needed(node):
                self._forget(node)
                break


class _ScansEverything(CountingTape):
    """burn up to 0.16: each backward pass scans all nodes."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._scanned = ledger

    def backward(self, name: str) -> None:
        super().backward(name)
        self._scanned.step(self.count())


FAULTS: Final = (
    Fault("tape.never_collects", "tracel-ai/burn#2347", "Nothing but the root is freed.", Parts(tape=_NeverCollects)),
    Fault(
        "tape.orphaned_intermediate",
        "tracel-ai/burn#2488",
        "Orphans with absent parents stay.",
        Parts(tape=_OrphansWithParents),
    ),
    Fault(
        "tape.long_lived_parent",
        "tracel-ai/burn#3957",
        "Orphans below a long-lived tensor stay.",
        Parts(tape=_LongLivedParent),
    ),
    Fault("tape.drains_one_level", "tracel-ai/burn#4039", "A dead chain drains slowly.", Parts(tape=_DrainsOneLevel)),
    Fault(
        "tape.scans_everything",
        "tracel-ai/burn#2487",
        "Each pass costs as much as is kept.",
        Parts(tape=_ScansEverything),
    ),
)
