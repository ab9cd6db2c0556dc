"""The parts of the reference: one class for each component, so that a fault is one part replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quiesce.reference.captures import Captures
from quiesce.reference.launcher import Launcher
from quiesce.reference.ledger import Ledger
from quiesce.reference.lifecycle import Lifecycle
from quiesce.reference.pinned_pool import PinnedPool
from quiesce.reference.pool import CachingPool
from quiesce.reference.staging import Stager
from quiesce.reference.streams import Streams
from quiesce.reference.tape import CountingTape, Tape


@dataclass(frozen=True, slots=True)
class Parts:
    """The component classes that a machine is built from."""

    captures: type[Captures] = Captures
    streams: type[Streams] = Streams
    pool: type[CachingPool] = CachingPool
    pinned_pool: type[PinnedPool] = PinnedPool
    stager: type[Stager] = Stager
    launcher: type[Launcher] = Launcher
    lifecycle: type[Lifecycle] = Lifecycle
    tape: Callable[[Ledger], Tape] = CountingTape
