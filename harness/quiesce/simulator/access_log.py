"""The reader of the log of kernels' wrong accesses, which lies next to a ledger; ``kernels/access_log.h`` writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FIELDS: Final = 9


@dataclass(frozen=True, slots=True)
class LoggedAccess:
    """A wrong access: the first of its kind of one instruction, in launches from one place by one test.

    ``launch`` is the number of the launch's record. ``test`` is the test of pytest that launched the kernel, and
    ``place`` is in the source; both are empty if not known.
    """

    launch: int
    test: str
    kernel: str
    block: tuple[int, ...]
    thread: tuple[int, ...]
    place: str
    ptx_line: int
    instruction: str
    count: int


def read_accesses(ledger: Path) -> tuple[LoggedAccess, ...]:
    """Return the wrong accesses of a process, in the order of the observations that name them by number."""
    try:
        text = ledger.with_suffix(".accesses").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    lines = (line.split("\t") for line in text.split("\n"))  # the last one of a killed process may be cut
    return tuple(
        LoggedAccess(
            int(launch), test, kernel, _index(block), _index(thread), place, int(ptx_line), instruction, int(count)
        )
        for count, launch, test, kernel, block, thread, place, ptx_line, instruction in (
            line for line in lines if len(line) == _FIELDS
        )
    )


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))
