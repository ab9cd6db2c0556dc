"""The reader of a log of kernels that did not compute, or not to their end; ``kernels/uncomputed.h`` writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quiesce.simulator.kernel_names import readable_kernel_name


@dataclass(frozen=True, slots=True)
class Uncomputed:
    """A kernel that was launched and did not compute, and why. ``has_begun``: it computed, but not to its end."""

    kernel: str
    reason: str
    has_begun: bool = False


def read_uncomputed(ledger: Path) -> tuple[Uncomputed, ...]:
    """Return the kernels of one process that did not compute to their end, each once, in the order of the launches."""
    try:
        text = ledger.with_suffix(".uncomputed").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    lines = (line.split("\t") for line in text.split("\n"))
    whole = (line for line in lines if len(line) == 3)  # the last one of a killed process may be cut
    kernels = (Uncomputed(readable_kernel_name(name), reason, begun == "1") for name, reason, begun in whole)
    return tuple(dict.fromkeys(kernels))
