"""Failures that a run asked for, and that never happened: the program was not tested with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from quiesce.amounts import counted
from quiesce.simulator.ledger import CALL_KINDS, Ledger

Met: TypeAlias = Mapping[str, tuple[int, int]]
"""For each kind of call, how many calls one process made, and how many of them the run let fail."""


def met_in(ledger: Ledger) -> Met:
    """Return what one process made of each kind of call."""
    return {kind: ledger.met(kind) for kind in CALL_KINDS}


def never_happened(failures: Sequence[str], processes: Sequence[Met]) -> Iterator[str]:
    """Yield what to say of each failure that happened in no process; ``failures`` are those that ``--fail`` asked for.

    One that happens by chance may stay away. Of two for the same kind of call, the runtime takes the last.
    """
    armed = {text.partition(":")[0]: text for failure in failures for text in failure.split(",") if text}
    for kind, text in armed.items():
        calls, failed = zip(*(met[kind] for met in processes), strict=True)
        if "%" in text or any(failed):
            continue
        who = "the program" if len(processes) == 1 else "the process with the most of them"
        made = counted(max(calls), "such call") if any(calls) else "no such call"
        yield f"--fail {text} never happened: {who} made {made}"
