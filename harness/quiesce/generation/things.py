"""What a generated sequence owns: streams, blocks, events, captures and the rest, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from quiesce.operations import CaptureMode, MemoryKind, Slot


@dataclass(slots=True, eq=False)
class Stream:
    """A stream: how many points of its order have passed, and which points of others it comes behind."""

    slot: Slot | None
    device: int
    nonblocking: bool = False
    alive: bool = True
    passed: int = 0
    behind: Clock = field(default_factory=dict)
    stalled: bool = False
    capture: Capture | None = None


Clock: TypeAlias = dict[Stream, int]
"""Up to which point of each stream something comes behind."""


@dataclass(slots=True, eq=False)
class Block:
    """A block: allocated at the point ``made_at`` of its stream; ``uses`` is its last use on each stream."""

    slot: Slot
    size_bytes: int
    kind: MemoryKind
    stream: Stream
    made_at: int
    pool: Pool | None
    device: int
    uses: Clock = field(default_factory=dict)
    alive: bool = True
    capture: Capture | None = None
    """The capture that its stream took part in."""
    is_of_graph: bool = False
    """Whether the same capture freed it, and its memory stays the graph's."""


@dataclass(slots=True, eq=False)
class Pool:
    """A pool of the sequence's own."""

    slot: Slot
    device: int
    limit_bytes: int | None
    blocks: int = 0


@dataclass(slots=True, eq=False)
class Event:
    """An event; ``clock`` is what its last record stands for, None where that was in a capture."""

    slot: Slot
    device: int
    clock: Clock | None = field(default_factory=dict)
    capture: Capture | None = None
    recorded_on: Stream | None = None


@dataclass(slots=True, eq=False)
class Capture:
    """A capture in progress. It is ``spoiled`` once a call was made that it forbids."""

    origin: Stream
    mode: CaptureMode
    members: list[Stream]
    unjoined: list[Stream] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    spoiled: bool = False
    over: bool = False


@dataclass(slots=True, eq=False)
class Graph:
    """A captured graph and the blocks that running it uses."""

    slot: Slot
    device: int
    blocks: tuple[Block, ...]


@dataclass(slots=True, eq=False)
class Instance:
    """An execution-space instance; one that owns its stream takes it along."""

    slot: Slot
    stream: Stream
    owned: bool


@dataclass(slots=True, eq=False)
class Node:
    """A node of the autodiff tape that the sequence holds."""

    slot: Slot
    holds: int = 1
