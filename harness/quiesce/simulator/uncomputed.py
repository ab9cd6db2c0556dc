"""The reader of a log of kernels that did not compute although kernels run; ``kernels/uncomputed.h`` writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Uncomputed:
    """A kernel that was launched and did not compute, and why."""

    kernel: str
    reason: str


def read_uncomputed(ledger: Path) -> tuple[Uncomputed, ...]:
    """Return the kernels of one process that did not compute, each once, in the order of their first launches."""
    try:
        text = ledger.with_suffix(".uncomputed").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    lines = (line.partition("\t") for line in text.split("\n"))  # the last one of a killed process may be cut
    return tuple(dict.fromkeys(Uncomputed(kernel, reason) for kernel, tab, reason in lines if tab))
