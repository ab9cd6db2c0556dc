"""What is said of a file of a run that makes no sense: its program can write to all of them.

Readers of such files refuse what is out of their bounds with one sentence. They never guess.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quiesce.errors import QuiesceError


class DamagedFile(QuiesceError):
    """A file of a run is cut off, or has content that quiesce never writes."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(
            f"{path}: this file of the run is damaged, so the program was not judged; the program, or something else "
            "that can write to the folder of the run, has changed it; run it again"
        )


@contextmanager
def refusing_damage(path: str | Path) -> Iterator[None]:
    """Turn what a reader of a file stumbles over into :class:`DamagedFile`; a generator may yield in it."""
    try:
        yield
    except (struct.error, LookupError, ValueError, OverflowError, MemoryError, RecursionError):
        raise DamagedFile(path) from None
