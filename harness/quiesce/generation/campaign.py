"""A campaign: generated sequences on one backend until something is found or enough was done, then shrinking."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from quiesce.backend import Backend, Description
from quiesce.cases.case import Case
from quiesce.findings import Finding
from quiesce.generation.bulk import generate_one
from quiesce.generation.coverage import Coverage, Watched
from quiesce.generation.saving import named_case
from quiesce.generation.shrinking import TRIALS_MAX, shrink
from quiesce.lockstep import run_lockstep

IDLE_SEQUENCES_MAX: Final = 1000
"""A campaign whose sequences perform nothing ends after so many: this backend can do nothing that is generated."""

Progress: TypeAlias = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Discovery:
    """A failing sequence: its number, how it failed, and the case that it was shrunk to, which fails as ``shrunk``.

    ``interrupted`` says that somebody did not wait for the shortest.
    """

    number: int
    finding: Finding
    case: Case
    shrunk: Finding
    trials: int
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """What came of a campaign; ``discovery`` is None where nothing was found.

    ``operations`` counts what was performed, up to the failure, and ``skipped`` what was left out because its block
    was never made. ``unsupported`` counts the sequences that ended early, by reason.
    """

    backend: str
    seed: int
    hostile: bool
    operations: int
    sequences: int
    skipped: int
    unsupported: Mapping[str, int]
    coverage: Coverage
    discovery: Discovery | None = None


def run_campaign(
    backend: Backend,
    *,
    seed: int,
    operations: int,
    hostile: bool = False,
    name: str | None = None,
    found: Callable[[Case], None] | None = None,
    progress: Progress | None = None,
) -> CampaignResult:
    """Run sequences until ``operations`` were performed or one failed, and shrink that one.

    ``name`` is what the backend was asked for as, for the command that finds the same again. ``found`` is handed the
    failing sequence as a case before it is shrunk, so that a kill loses nothing; a :class:`KeyboardInterrupt` meanwhile
    ends the shrinking with the best there is. Raises
    :class:`quiesce.errors.BackendUnavailable` where the backend cannot work.
    """
    coverage = Coverage()
    watched = Watched(backend, coverage)
    description = backend.describe()
    unsupported: Counter[str] = Counter()
    discovery = None
    done = skipped = number = 0
    while done < operations and discovery is None and (done or number < IDLE_SEQUENCES_MAX):
        sequence = generate_one(description, seed, number, hostile=hostile)
        trial = run_lockstep(watched, sequence.device, sequence.steps(), timeline=False)
        done += trial.operations
        skipped += trial.skipped
        if trial.unsupported:
            unsupported[trial.unsupported] += 1
        if progress is not None:
            progress(done, operations, f"operations, sequence {number}")
        if trial.findings:
            command = reproduce_command(name or description.name, seed, hostile=hostile, operations=done)
            maker = _CaseMaker(backend, description, command, f"{trial.findings[0].invariant}_seed_{seed}")
            discovery = maker.discover(number, sequence.case(), trial.findings[0], found, progress)
        number += 1
    shown = name or description.name
    return CampaignResult(shown, seed, hostile, done, number, skipped, unsupported, coverage, discovery)


@dataclass(frozen=True, slots=True)
class _CaseMaker:
    backend: Backend
    description: Description
    command: str
    name: str

    def discover(
        self,
        number: int,
        whole: Case,
        finding: Finding,
        found: Callable[[Case], None] | None,
        progress: Progress | None,
    ) -> Discovery:
        if found is not None:
            found(self._named(whole, finding))
        shrunk = shrink(self.backend, whole, progress=_shrinking(progress))
        if shrunk is None:  # it does not fail again: the backend depends on something beside the sequence
            return Discovery(number, finding, self._named(whole, finding), finding, 0)
        case = self._named(shrunk.case, shrunk.finding)
        return Discovery(number, finding, case, shrunk.finding, shrunk.trials, shrunk.interrupted)

    def _named(self, case: Case, finding: Finding) -> Case:
        return named_case(case, finding, self.description, found_by=self.command, name=self.name)


def _shrinking(progress: Progress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda trials, lines: progress(trials, TRIALS_MAX, f"trials, {lines} lines left")


def reproduce_command(backend: str, seed: int, *, hostile: bool, operations: int) -> str:
    """Return the command line that finds the same again, quoted for a POSIX shell."""
    words = ["quiesce", "explore", "--backend", backend, "--seed", str(seed), "--operations", str(operations)]
    return shlex.join([*words, "--hostile"] if hostile else words)
