"""The three pipes of a driver program, as its harness uses them: whatever the driver does, no call blocks for long."""

from __future__ import annotations

from dataclasses import dataclass
from io import FileIO
from typing import Final, Protocol, TypeAlias

READ_BYTES: Final = 64 << 10
TAIL_BYTES_MAX: Final = 64 << 10
"""How much of a driver's standard error is kept: its end."""


StandardFiles: TypeAlias = tuple[FileIO, FileIO, FileIO]
"""Our ends of standard input, output and error, unbuffered."""


@dataclass(frozen=True, slots=True)
class Output:
    """What one read of standard output brought.

    ``lines`` are complete (their line endings removed); ``rest`` is the beginning of another. ``overflow``: more came
    than a driver may write, and nothing further is kept. ``ended``: the end of the output.
    """

    lines: tuple[bytes, ...] = ()
    rest: bytes = b""
    overflow: bool = False
    ended: bool = False


class Pipes(Protocol):
    """Lines to a driver program and from it. Not shared between threads."""

    def send(self, text: bytes) -> None:
        """Send a text, in the end; a driver that is gone shows at its output."""

    def close_input(self) -> None:
        """Close standard input after what was sent."""

    def receive(self, seconds_max: float) -> Output | None:
        """Return what came next, waiting at most ``seconds_max``; None: nothing came. Nothing comes after the end."""

    def errors(self, seconds_max: float) -> str:
        """Return the end of standard error, waiting at most ``seconds_max`` for its last words."""

    def close(self) -> None:
        """Close what this process holds of the pipes; idempotent."""


class Tail:
    """The end of a text that comes in pieces."""

    def __init__(self) -> None:
        self._kept = b""
        self._total_bytes = 0

    def add(self, piece: bytes) -> None:
        """Add a piece, and forget what is too long ago."""
        self._kept = (self._kept + piece)[-TAIL_BYTES_MAX:]
        self._total_bytes += len(piece)

    def text(self) -> str:
        """Return what was kept, with how much it is of how much; nothing where nothing came."""
        kept, total = self._kept, self._total_bytes
        if not total:
            return ""
        cut = f" (the last {len(kept):,} of {total:,} bytes)" if total > len(kept) else ""
        return f"standard error{cut}:\n{kept.decode('utf-8', 'replace')}"
