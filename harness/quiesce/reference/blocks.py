"""Blocks: what an allocator hands out, and the uses that it must wait for before handing it out again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from quiesce.operations import MemoryKind

if TYPE_CHECKING:
    from quiesce.reference.captures import Capture, Progress
    from quiesce.reference.streams import Stream


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
