"""The logs that one process left, or is still writing: its ledger, with its call stacks and what its kernels did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from quiesce.simulator.runtime import (
    NO_CODE,
    CallStacks,
    DeviceCode,
    Ledger,
    LoggedAccess,
    TouchedLog,
    open_ledger,
    open_stacks,
    read_accesses,
    touched_beside,
)


@dataclass(frozen=True, slots=True)
class Logs:
    """What is known of one process. ``accesses`` returns the wrong accesses of kernels, of which there may be more."""

    ledger: Ledger
    stacks: CallStacks | None = None
    accesses: Callable[[], Sequence[LoggedAccess]] = tuple
    touched: TouchedLog | None = None
    code: DeviceCode = NO_CODE


@contextmanager
def open_logs(path: Path) -> Iterator[Logs]:
    """Open all logs of a process, which stand next to its ledger at ``path``."""
    with open_ledger(path) as ledger, open_stacks(path) as stacks:
        yield Logs(ledger, stacks, partial(read_accesses, path), touched_beside(path), DeviceCode(path))
