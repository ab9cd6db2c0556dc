"""The objects of a sequence: streams, events, blocks, captures and graphs. They refer to each other, hence one module.

``streams``, ``captures`` and the pools have the calls that create, change and destroy them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from quiesce.allocators.reference.ledger import CallRejected
from quiesce.model.operations import CaptureMode, MemoryKind
from quiesce.model.outcomes import CAPTURE_INVALIDATED

Progress: TypeAlias = "dict[Stream, int]"
"""How much captured work of each stream something is ordered behind; streams without any are left out."""


@dataclass(slots=True, eq=False)
class Record:
    """One recording of an event: a point in a stream's queue that completes once."""

    stream: Stream
    complete: bool = False
    waiters: list[Stream] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Work:
    """Something that takes its turn and is done."""


@dataclass(slots=True, eq=False)
class Gate:
    """What holds a stalled stream until it opens."""

    open: bool = False


@dataclass(slots=True, eq=False)
class Wait:
    """A stream waits here for a recording."""

    record: Record


Item: TypeAlias = Work | Gate | Wait | Record


@dataclass(slots=True, eq=False)
class Stream:
    """A queue of work on one device."""

    name: str
    handle: int
    device: int
    nonblocking: bool = False
    alive: bool = True
    queue: deque[Item] = field(default_factory=deque)
    gates: dict[Gate, None] = field(default_factory=dict)
    capture: Capture | None = None
    is_default: bool = False
    """Whether this is the legacy default stream of its device."""


@dataclass(slots=True, eq=False)
class Event:
    """An event; ``record`` is its last recording, ``last_stream`` the stream of that, dead or alive."""

    name: str
    handle: int
    device: int
    alive: bool = True
    record: Record | None = None
    last_stream: Stream | None = None
    capture: Capture | None = None
    captured: Progress = field(default_factory=dict)
    """What of its capture a recording in one stands for."""


class Owner(Protocol):
    """Whoever a block goes back to, and counts what it has handed out (bytes are footprints)."""

    live_bytes: int
    live_blocks: int

    def free(self, block: Block, stream: Stream) -> None:
        """Take the block back; the free is ordered on ``stream``."""

    def free_again(self, block: Block, stream: Stream) -> None:
        """Answer a second free of a block."""


@dataclass(slots=True, eq=False)
class Block:
    """A block in the sequence's hands.

    ``size_bytes`` was asked for, ``footprint_bytes`` is what it takes. ``uses`` are the streams with work on it.
    """

    address: int
    size_bytes: int
    footprint_bytes: int
    kind: MemoryKind
    stream: Stream
    owner: Owner
    origin: object = None
    uses: dict[Stream, None] = field(default_factory=dict)
    captured_on: set[Stream] = field(default_factory=set)
    capture: Capture | None = None
    """The capture that it was allocated in."""
    behind: Progress = field(default_factory=dict)
    """The captured work of the owners that its memory had before in the same capture."""
    earlier: tuple[Block, ...] = ()
    """Those owners."""


class Keeper(Protocol):
    """Whoever keeps memory for graphs."""

    def take_back(self, kept: KeptBlock) -> None:
        """Take memory back that a graph ran on: the graph is gone."""


@dataclass(slots=True, eq=False)
class KeptBlock:
    """A block that a capture allocated and freed: whoever has its memory next belongs to the same graph.

    ``behind`` is the captured work that the next owner comes behind.
    """

    block: Block
    pool: Keeper
    behind: Progress


@dataclass(slots=True, eq=False)
class Capture:
    """A capture in progress: where it began, the streams that joined, and the work recorded so far."""

    origin: Stream
    mode: CaptureMode
    streams: set[Stream] = field(default_factory=set)
    launches: list[tuple[Block, ...]] = field(default_factory=list)
    invalid: bool = False
    is_needed: bool = True
    """Whether it goes on, or its graph is there."""
    kept: list[KeptBlock] = field(default_factory=list)
    _progress: dict[Stream, Progress] = field(default_factory=dict)

    def launch(self, stream: Stream, launches: Iterable[tuple[Block, ...]]) -> None:
        """Record launches on ``stream``, each with the blocks that it uses."""
        self.require_valid()
        for blocks in launches:
            self.launches.append(blocks)
            progress = self._progress.setdefault(stream, {})
            progress[stream] = progress.get(stream, 0) + 1

    def require_valid(self) -> None:
        """Refuse further use of streams whose capture was invalidated ("… is invalid and will return an error")."""
        if self.invalid:
            raise CallRejected(CAPTURE_INVALIDATED)

    def progress_of(self, stream: Stream) -> Progress:
        """Return what an event recorded on ``stream`` now stands for."""
        self.require_valid()
        return dict(self._progress.get(stream, {}))

    def join(self, stream: Stream, progress: Progress) -> None:
        """Order what ``stream`` captures from now on behind an event that stands for ``progress``."""
        self.streams.add(stream)
        stream.capture = self
        own = self._progress.setdefault(stream, {})
        for other, number in progress.items():
            own[other] = max(number, own.get(other, 0))

    def keep(self, block: Block, pool: Keeper) -> None:
        """Keep a block that was freed for later allocations of this capture, and for its graph."""
        behind = dict(block.behind)
        for stream in block.captured_on:  # perhaps by another capture than this
            behind[stream] = self._progress.get(stream, {}).get(stream, 0)
        self.kept.append(KeptBlock(block, pool, behind))

    def take(self, pool: Keeper, footprint_bytes: int, alignment_bytes: int, stream: Stream) -> KeptBlock | None:
        """Return the newest kept block of that size that ``stream`` comes behind, or None."""
        for kept in reversed(self.kept):
            fits = kept.pool is pool and kept.block.footprint_bytes == footprint_bytes
            if fits and not kept.block.address % alignment_bytes and self.is_behind(stream, kept.behind):
                self.kept.remove(kept)
                return kept
        return None

    def give_back(self) -> None:
        """Give memory back to the pools that it came from: no graph runs on it any more."""
        self.is_needed = False
        for kept in self.kept:
            kept.pool.take_back(kept)

    def is_behind(self, stream: Stream, progress: Progress) -> bool:
        """Whether what ``stream`` captures from now on comes behind captured work."""
        known = self._progress.get(stream, {})
        return all(known.get(other, 0) >= number for other, number in progress.items())

    @property
    def is_joined(self) -> bool:
        """Whether the origin comes behind all captured work; a fork that did nothing leaves nothing to join."""
        known = self._progress.get(self.origin, {})
        return all(known.get(stream, 0) >= own.get(stream, 0) for stream, own in self._progress.items())


@dataclass(slots=True, eq=False)
class Graph:
    """A captured graph: the blocks that each of its launches uses, in order, and the memory that it runs on."""

    name: str
    launches: tuple[tuple[Block, ...], ...]
    capture: Capture
