"""One sequence by its number: what comes of it depends on that alone, so it may run in any process.

Tasks go to other processes, and what comes back is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

from quiesce.allocators.generation.coverage import Coverage, Watched
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.lockstep import finding_of, run_lockstep
from quiesce.model.backend import Backend, BackendFault, Description
from quiesce.model.findings import Finding
from quiesce.model.rules import RAISED, Kind

IN_FLIGHT_MAX: Final = 256
"""So many tasks are begun at most before the result of the first of them is asked for."""

Task: TypeAlias = Callable[[Backend, Description], Any]
"""What a worker does: a function of a module with its arguments, so that it can be sent there."""


@dataclass(frozen=True, slots=True)
class Died:
    """What came of a task whose worker died: how the process ended, and whether by a signal of its own, as SIGSEGV."""

    how: str
    is_crash: bool = False


class Jobs(Protocol):
    """Runs tasks, and yields their results in their order. It takes a task when it can begin it."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """Run tasks; :class:`Died` is the result of one that ended its process, again where it was killed.

        Raises :class:`BackendUnavailable` where the backend cannot be opened there.
        """


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched: ``name`` is what the backend is asked for as, ``shard`` K of N takes every N-th sequence."""

    name: str
    seed: int
    hostile: bool
    shard: tuple[int, int] = (1, 1)

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of its sequences, without end."""
        number, step = self.shard[0] - 1, self.shard[1]
        while True:
            yield number
            number += step

    def share_of(self, operations: int) -> int:
        """Return how many of the operations that all shards perform together are this one's."""
        return -(-operations // self.shard[1])


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one sequence; it can be sent to another process."""

    number: int
    operations: int
    skipped: int
    unsupported: str
    pairs: Mapping[tuple[str, str], int]
    finding: Finding | None
    ended_its_process: bool = False
    """Whether the process died with it: then nobody runs it in a process that is still needed."""


def run_sequence(backend: Backend, description: Description, search: Search, number: int) -> Ran:
    """Run one sequence on a backend."""
    coverage = Coverage()
    sequence = generate_one(description, search.seed, number, hostile=search.hostile)
    trial = run_lockstep(Watched(backend, coverage), sequence.device, sequence.steps(), timeline=False)
    finding = trial.findings[0] if trial.findings else None
    return Ran(number, trial.operations, trial.skipped, trial.unsupported, coverage.pairs, finding)


def ended_process(number: int, died: Died) -> Ran:
    """Return what came of a sequence that ended its process: nobody knows more than how."""
    finding = replace(finding_of(BackendFault(RAISED, died.how)), kind=Kind.CRASH)
    return Ran(number, 0, 0, "", {}, finding, ended_its_process=True)
