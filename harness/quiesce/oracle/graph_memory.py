"""Memory that graphs run on: what a capture allocated, used and freed is nobody else's until its graph is gone.

``upstream:`` tracel-ai/cubecl#1612: a pool handed out what a capture had freed, and each launch of the graph wrote it.
"""

from __future__ import annotations

from quiesce.oracle.blocks import BlockState, GraphMemory, Kept
from quiesce.oracle.clocks import Clock
from quiesce.oracle.intervals import IntervalIndex


class KeptMemory:
    """All memory that is kept for graphs."""

    def __init__(self) -> None:
        self._index: IntervalIndex[Kept] = IntervalIndex()

    def keep(self, block: BlockState, graph: GraphMemory, behind: Clock) -> None:
        """Enter a block that its capture used and freed."""
        self._index.add(block.address, block.end, Kept(block, graph, behind))

    def restore(self, block: BlockState) -> None:
        """Enter again what was kept in the place of a block that was freed, and that its capture did not use since."""
        for start, end, kept in block.earlier_in_graph:
            self._index.add(start, end, kept)

    def take(self, start: int, end: int, graph: GraphMemory | None) -> list[Kept]:
        """Take it that memory is somebody's who belongs to ``graph``; return what of it is another graph's."""
        if not self._index:
            return []
        met = [kept for kept in self._index.cut(start, end) if kept.graph is not graph]
        return [kept for kept in met if not kept.graph.is_doubtful]

    def within(self, block: BlockState, graph: GraphMemory) -> list[tuple[int, int, Kept]]:
        """Return what of a block's memory is kept for its graph, and where."""
        met = self._index.overlapping(block.address, block.end)
        return [
            (max(start, block.address), min(end, block.end), kept) for start, end, kept in met if kept.graph is graph
        ]

    def release(self, graph: GraphMemory) -> list[tuple[int, int, Kept]]:
        """Take a graph's memory out, and return where it was: the graph is gone."""
        of_graph = [(start, end, kept) for start, end, kept in self._index if kept.graph is graph]
        for start, _, _ in of_graph:
            self._index.remove(start)
        return of_graph
