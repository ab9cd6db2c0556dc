"""A campaign: generated sequences on one backend until something is found or enough was done, then shrinking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from quiesce import shell
from quiesce.backend import Backend, Description
from quiesce.cases.case import Case
from quiesce.findings import Finding
from quiesce.generation.bulk import generate_one
from quiesce.generation.coverage import Coverage, Watched
from quiesce.generation.saving import named_case
from quiesce.generation.shrinking import TRIALS_MAX, Shrunk, shrink
from quiesce.lockstep import run_lockstep

IDLE_SEQUENCES_MAX: Final = 1000
"""A campaign whose sequences perform nothing ends after so many: this backend can do nothing that is generated."""

SHORT_LINES: Final = 4
"""A case with more lines is set against what the next failing sequences shrink to."""
RIVALS_MAX: Final = 3
RIVAL_OPERATIONS_MAX: Final = 10_000

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
    trials_max: int | None = None,
) -> CampaignResult:
    """Run sequences until ``operations`` were performed or one failed, and shrink that one.

    ``name`` is what the backend was asked for as, for the command that finds the same again. ``found`` is handed the
    failing sequence as a case before it is shrunk, so that a kill loses nothing; a :class:`KeyboardInterrupt` meanwhile
    ends the shrinking with the best there is. ``trials_max`` bounds the sequences that shrinking runs, where each is
    dear: then no others that fail are looked for. Raises
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
            name_of_case = f"{trial.findings[0].rule}_seed_{seed}"
            maker = _CaseMaker(backend, description, command, name_of_case, trials_max)
            rivals = partial(_rivals, backend, description, seed, number, hostile, trial.findings[0].rule)
            discovery = maker.discover(number, sequence.case(), trial.findings[0], rivals, found, progress)
        number += 1
    shown = name or description.name
    return CampaignResult(shown, seed, hostile, done, number, skipped, unsupported, coverage, discovery)


def discover(
    backend: Backend,
    description: Description,
    number: int,
    whole: Case,
    finding: Finding,
    *,
    command: str,
    name: str,
    trials_max: int | None = None,
) -> Discovery:
    """Shrink the failing sequence of that number to a case; ``command`` finds it again."""
    maker = _CaseMaker(backend, description, command, name, trials_max)
    return maker.discover(number, whole, finding, lambda: iter(()), None, None)


@dataclass(frozen=True, slots=True)
class _CaseMaker:
    backend: Backend
    description: Description
    command: str
    name: str
    trials_max: int | None

    def discover(
        self,
        number: int,
        whole: Case,
        finding: Finding,
        rivals: Callable[[], Iterator[Case]],
        found: Callable[[Case], None] | None,
        progress: Progress | None,
    ) -> Discovery:
        if found is not None:
            found(self._named(whole, finding))
        trials_max = TRIALS_MAX if self.trials_max is None else self.trials_max
        shrunk = shrink(self.backend, whole, trials_max=trials_max, progress=_shrinking(progress))
        if shrunk is None:  # it does not fail again: the backend depends on something beside the sequence
            return Discovery(number, finding, self._named(whole, finding), finding, 0)
        if len(shrunk.case.body) > SHORT_LINES and self.trials_max is None:
            shrunk = self._shortest(shrunk, rivals(), progress)
        case = self._named(shrunk.case, shrunk.finding)
        return Discovery(number, finding, case, shrunk.finding, shrunk.trials, shrunk.interrupted)

    def _shortest(self, shrunk: Shrunk, rivals: Iterator[Case], progress: Progress | None) -> Shrunk:
        """Return the shortest of what this and other failing sequences shrink to: each ends where no step is left."""
        trials = shrunk.trials
        try:
            for rival in rivals:
                other = None if shrunk.interrupted else shrink(self.backend, rival, progress=_shrinking(progress))
                trials += 0 if other is None else other.trials
                if other is not None and other.finding.rule == shrunk.finding.rule:
                    shrunk = min(shrunk, other, key=lambda each: len(each.case.body))
        except KeyboardInterrupt:
            return replace(shrunk, trials=trials, interrupted=True)
        return replace(shrunk, trials=trials)

    def _named(self, case: Case, finding: Finding) -> Case:
        return named_case(case, finding, self.description, found_by=self.command, name=self.name)


def _rivals(
    backend: Backend, description: Description, seed: int, number: int, hostile: bool, rule: str
) -> Iterator[Case]:
    """Yield some of the next sequences that break the same rule."""
    yielded = done = 0
    while yielded < RIVALS_MAX and done < RIVAL_OPERATIONS_MAX:
        number += 1
        sequence = generate_one(description, seed, number, hostile=hostile)
        trial = run_lockstep(backend, sequence.device, sequence.steps(), timeline=False)
        done += max(1, trial.operations)
        if trial.findings and trial.findings[0].rule == rule:
            yielded += 1
            yield sequence.case()


def _shrinking(progress: Progress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda trials, lines: progress(trials, TRIALS_MAX, f"trials, {lines} lines left")


def reproduce_command(
    backend: str, seed: int, *, hostile: bool, operations: int, shard: tuple[int, int] = (1, 1)
) -> str:
    """Return the command line that finds the same again, quoted for a POSIX shell.

    ``operations`` is how many the shard performed; the command states those of all shards together.
    """
    operations *= shard[1]
    words = ["quiesce", "explore", "--backend", backend, "--seed", str(seed), "--operations", str(operations)]
    words += [] if shard == (1, 1) else ["--shard", f"{shard[0]}/{shard[1]}"]
    return shell.join([*words, "--hostile"] if hostile else words)
