"""What the oracle knows of a block: who used it, what was there before, and the graphs whose memory it is.

What a capture allocated, used and freed is nobody else's until its graph is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce.allocators.indexes import IntervalIndex
from quiesce.allocators.oracle.clocks import Clock, StreamState, Timeline
from quiesce.model.operations import MemoryKind, Slot


@dataclass(slots=True, eq=False)
class GraphMemory:
    """What an allocator may keep for a capture, and for the graph that comes of it: that runs on the same addresses."""

    is_gone: bool = False
    """Whether there is neither the capture nor the graph any more."""
    is_doubtful: bool = False
    """Whether there may be none: the capture may be invalid, or a call failed that was to destroy the graph."""
    runs: Clock = field(default_factory=dict)
    """The work of its launches."""
    launched_on: dict[Timeline, StreamState] = field(default_factory=dict)
    pools: set[Slot | None] = field(default_factory=set)
    """Where blocks were made meanwhile."""


@dataclass(slots=True, eq=False)
class BlockState:
    """A block that the sequence owns or owned.

    ``device`` is the one whose memory it is; ``made_by`` says, as text, what made it. ``alignment_bytes`` is what was
    asked for beyond the backend's own.
    """

    slot: Slot
    address: int
    size_bytes: int
    kind: MemoryKind
    stream: StreamState
    pool: Slot | None
    device: int
    made_by: object
    alignment_bytes: int = 0
    uses: Clock = field(default_factory=dict)
    inherited: list[Freed] = field(default_factory=list)
    graphs: tuple[GraphMemory, ...] = ()
    """The captures that were going on when it was made."""
    made_in: GraphMemory | None = None
    """The capture that its own stream took part in, where what that frees is to be kept for the graph."""
    captured_uses: Clock = field(default_factory=dict)
    """Its work in that capture."""
    earlier_in_graph: list[tuple[int, int, Kept]] = field(default_factory=list)
    """What earlier owners of its memory left in that capture, and where."""
    may_lie_in_bytes: int = 0
    """How much the largest block of its kind took that was freed before it was made: it may lie in what that left."""
    launches_before: int = 0
    """How many launches there were when it was made."""
    claimed_bytes: int | None = None
    """By how much the backend's own ``live`` gauge rose for it."""
    staged_from: BlockState | None = None
    """For a buffer of a library's own: what it has the content of."""

    @property
    def end(self) -> int:
        """The address behind the block."""
        return self.address + self.size_bytes


@dataclass(slots=True, eq=False)
class Freed:
    """Memory that was freed while work on it may still be in flight."""

    guard: Clock
    block: BlockState


@dataclass(frozen=True, slots=True)
class Kept:
    """Memory of ``graph``. ``behind`` is the captured work of ``block``, its last owner, that the next waits for."""

    block: BlockState
    graph: GraphMemory
    behind: Clock


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
