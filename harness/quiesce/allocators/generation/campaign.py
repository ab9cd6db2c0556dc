"""Campaigns: generated sequences on one backend until something is found or enough was done, then shrinking.

A search runs every sequence of a seed up to an amount, wherever it runs, and keeps the distinct causes of what fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from quiesce.allocators.cases import CASE_SUFFIX, Case, PerformStep, expand
from quiesce.allocators.generation.coverage import Coverage
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.running import Ran, Search, run_sequence
from quiesce.allocators.generation.saving import FOLDER, in_short_names, named_case
from quiesce.allocators.generation.shrinking import TRIALS_MAX, Known, Shrunk, shrink
from quiesce.allocators.lockstep import run_lockstep
from quiesce.model import operations as ops
from quiesce.model import wording
from quiesce.model.backend import Backend, Description
from quiesce.model.findings import Finding

IDLE_SEQUENCES_MAX: Final = 1000
"""A campaign whose sequences perform nothing ends after so many: this backend can do nothing that is generated."""

SHORT_LINES: Final = 4
"""A case with more lines is set against what the next failing sequences shrink to."""
RIVALS_MAX: Final = 3
RIVAL_OPERATIONS_MAX: Final = 10_000

Progress: TypeAlias = Callable[[int, int, str], None]
Runs: TypeAlias = Callable[[Search], Iterator[Ran]]
"""Runs the sequences of a search wherever it wants to, and yields what came of them in their order, without end."""


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
    runs: Runs | None = None,
) -> CampaignResult:
    """Run sequences until ``operations`` were performed or one failed, and shrink that one.

    ``name`` is what the backend was asked for as, for the command that finds the same again. ``found`` is handed the
    failing sequence as a case before it is shrunk, so that a kill loses nothing; a :class:`KeyboardInterrupt` meanwhile
    ends the shrinking with the best there is. ``trials_max`` bounds the sequences that shrinking runs, where each is
    dear: then no others that fail are looked for. ``runs`` runs the sequences somewhere else; what fails is shrunk
    here, unless it ended its process there. Raises
    :class:`BackendUnavailable` where the backend cannot work.
    """
    coverage = Coverage()
    description = backend.describe()
    search = Search(name or description.name, seed, hostile)
    unsupported: Counter[str] = Counter()
    discovery = None
    done = skipped = sequences = 0
    for ran in _run_here(backend, description, search) if runs is None else runs(search):
        sequences += 1
        done += ran.operations
        skipped += ran.skipped
        coverage.pairs.update(ran.pairs)
        if ran.unsupported:
            unsupported[ran.unsupported] += 1
        if progress is not None:
            progress(done, operations, f"operations, sequence {ran.number}")
        if ran.finding is not None:
            command = reproduce_command(search.name, seed, hostile=hostile, operations=max(1, done))
            maker = _CaseMaker(backend, description, command, f"{ran.finding.rule}_seed_{seed}", trials_max)
            whole = generate_one(description, seed, ran.number, hostile=hostile).case()
            if ran.ended_its_process:
                discovery = maker.keep(ran.number, whole, ran.finding, found)
            else:
                rivals = partial(_rivals, backend, description, search, ran.number, ran.finding.rule)
                discovery = maker.discover(ran.number, whole, ran.finding, rivals, found, progress)
        if done >= operations or discovery is not None or (not done and sequences >= IDLE_SEQUENCES_MAX):
            break
    return CampaignResult(search.name, seed, hostile, done, sequences, skipped, unsupported, coverage, discovery)


def _run_here(backend: Backend, description: Description, search: Search) -> Iterator[Ran]:
    return (run_sequence(backend, description, search, number) for number in search.numbers())


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

    def keep(self, number: int, whole: Case, finding: Finding, found: Callable[[Case], None] | None) -> Discovery:
        """Keep a failing sequence as it is."""
        case = self._named(whole, finding)
        if found is not None:
            found(case)
        return Discovery(number, finding, case, in_short_names(finding, whole), 0, interrupted=True)

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
        known: Known = {}
        shrunk = shrink(self.backend, whole, trials_max=trials_max, progress=_shrinking(progress), known=known)
        if shrunk is None:  # it does not fail again: the backend depends on something beside the sequence
            return Discovery(number, finding, self._named(whole, finding), in_short_names(finding, whole), 0)
        if len(shrunk.case.body) > SHORT_LINES and self.trials_max is None:
            shrunk = self._shortest(shrunk, rivals(), progress, known)
        case = self._named(shrunk.case, shrunk.finding)
        said = in_short_names(shrunk.finding, shrunk.case)
        return Discovery(number, finding, case, said, shrunk.trials, shrunk.interrupted)

    def _shortest(self, shrunk: Shrunk, rivals: Iterator[Case], progress: Progress | None, known: Known) -> Shrunk:
        """Return the shortest of what this and other failing sequences shrink to: each ends where no step is left."""
        trials = shrunk.trials
        try:
            for rival in rivals:
                if shrunk.interrupted:
                    break
                other = shrink(self.backend, rival, progress=_shrinking(progress), known=known)
                trials += 0 if other is None else other.trials
                if other is not None and other.finding.rule == shrunk.finding.rule:
                    shrunk = min(shrunk, other, key=lambda each: len(each.case.body))
        except KeyboardInterrupt:
            return replace(shrunk, trials=trials, interrupted=True)
        return replace(shrunk, trials=trials)

    def _named(self, case: Case, finding: Finding) -> Case:
        return named_case(case, finding, self.description, found_by=self.command, name=self.name)


def _rivals(backend: Backend, description: Description, search: Search, number: int, rule: str) -> Iterator[Case]:
    """Yield some of the next sequences that break the same rule."""
    yielded = done = 0
    while yielded < RIVALS_MAX and done < RIVAL_OPERATIONS_MAX:
        number += 1
        sequence = generate_one(description, search.seed, number, hostile=search.hostile)
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
    return wording.join([*words, "--hostile"] if hostile else words)


SHRUNK_OF_A_RULE_MAX: Final = 4
"""So many sequences that break one rule are shrunk; those after them mostly have the same causes, and are counted."""

DEATHS_MAX: Final = 3
"""After so many sequences that ended their process, a search ends: each of them costs a new one."""

_Cause: TypeAlias = tuple[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Failing:
    """A sequence that fails, and how many operations had been performed by then."""

    number: int
    finding: Finding
    operations: int
    is_first: bool
    """Whether it is the first that breaks its rule."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The shortest of what fails in one way, and how many of the sequences that were shrunk do."""

    discovery: Discovery
    shrunk: int


@dataclass(slots=True)
class Tally:
    """What came of a search so far; ``operations_max`` None is no end."""

    operations_max: int | None
    operations: int = 0
    sequences: int = 0
    skipped: int = 0
    unsupported: Counter[str] = field(default_factory=Counter)
    coverage: Coverage = field(default_factory=Coverage)
    failing: list[Failing] = field(default_factory=list)
    deaths: int = 0
    """How many sequences ended their process."""
    is_entering: bool = False
    """Whether the next sequence is entered in part: a signal came in between."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more runs: it is enough, or too many sequences ended their process, which is dear."""
        return self.is_enough or self.deaths >= DEATHS_MAX

    @property
    def is_enough(self) -> bool:
        """Whether the search is over: enough was performed, or nothing at all can be."""
        if self.operations_max is not None and self.operations >= self.operations_max:
            return True
        return not self.operations and self.sequences >= IDLE_SEQUENCES_MAX

    def add(self, ran: Ran) -> Failing | None:
        """Enter the next sequence, and return it if it fails."""
        self.is_entering = True
        failing = self._enter(ran)
        self.is_entering = False
        return failing

    def _enter(self, ran: Ran) -> Failing | None:
        self.operations += ran.operations
        self.deaths += ran.ended_its_process
        self.sequences += 1
        self.skipped += ran.skipped
        self.coverage.pairs.update(ran.pairs)
        if ran.unsupported:
            self.unsupported[ran.unsupported] += 1
        if ran.finding is None:
            return None
        is_first = all(each.finding.rule != ran.finding.rule for each in self.failing)
        self.failing.append(Failing(ran.number, ran.finding, self.operations, is_first))
        return self.failing[-1]

    def to_shrink(self) -> list[Failing]:
        """Return the first failing sequences of each rule."""
        counted: Counter[str] = Counter()
        chosen = []
        for failing in self.failing:
            counted[failing.finding.rule] += 1
            if counted[failing.finding.rule] <= SHRUNK_OF_A_RULE_MAX:
                chosen.append(failing)
        return chosen

    def result(self, search: Search) -> CampaignResult:
        """Return the figures as those of a campaign."""
        return CampaignResult(
            search.name,
            search.seed,
            search.hostile,
            self.operations,
            self.sequences,
            self.skipped,
            self.unsupported,
            self.coverage,
        )


def case_name(search: Search, failing: Failing) -> str:
    """Return what the case of a failing sequence is called: the first of its rule after the rule and the seed alone."""
    number = "" if failing.is_first else f"_{failing.number}"
    return f"{failing.finding.rule}_seed_{search.seed}{number}"


def shrink_failing(
    backend: Backend, description: Description, search: Search, failing: Failing, *, trials_max: int | None = None
) -> Discovery:
    """Shrink a failing sequence to a case."""
    sequence = generate_one(description, search.seed, failing.number, hostile=search.hostile)
    command = reproduce_command(
        search.name, search.seed, hostile=search.hostile, operations=failing.operations, shard=search.shard
    )
    return discover(
        backend,
        description,
        failing.number,
        sequence.case(),
        failing.finding,
        command=command,
        name=case_name(search, failing),
        trials_max=trials_max,
    )


def distinct(discoveries: Iterable[Discovery], *, seed: int) -> list[Cause]:
    """Return one case for each cause, the shortest: the same rule broken by the same kinds of requests.

    The first case of a rule is named after the rule and the seed alone.
    """
    causes: dict[_Cause, list[Discovery]] = {}
    for discovery in discoveries:
        causes.setdefault(_cause_of(discovery), []).append(discovery)
    rules: set[str] = set()
    found = []
    for each in causes.values():
        shortest = min(each, key=lambda discovery: (len(discovery.case.body), discovery.number))
        rule = shortest.shrunk.rule
        name = f"{rule}_seed_{seed}" + (f"_{shortest.number}" if rule in rules else "")
        rules.add(rule)
        found.append(Cause(replace(shortest, case=_renamed(shortest.case, name)), len(each)))
    return found


def _renamed(case: Case, name: str) -> Case:
    return replace(case, identifier=f"{FOLDER}/{name}", path=f"{FOLDER}/{name}{CASE_SUFFIX}")


def _cause_of(discovery: Discovery) -> _Cause:
    requests = (step.operation for step in expand(discovery.case) if isinstance(step, PerformStep))
    kinds = {
        f"{type(each).__name__} {each.kind}" if isinstance(each, ops.Allocate) else type(each).__name__
        for each in requests
    }
    return discovery.shrunk.rule, frozenset(kinds)
