"""A search: every sequence of a seed up to an amount, wherever it runs, and the distinct causes of what fails.

What comes of a sequence depends on its number alone, so sequences may run in several processes. They are counted in
their order: the same number of operations ends a search after the same sequence, however many run at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from quiesce import operations as ops
from quiesce.backend import Backend, Description
from quiesce.cases.case import Case
from quiesce.cases.expansion import PerformStep, expand
from quiesce.cases.parser import CASE_SUFFIX
from quiesce.findings import Finding
from quiesce.generation.bulk import generate_one
from quiesce.generation.campaign import IDLE_SEQUENCES_MAX, CampaignResult, Discovery, discover, reproduce_command
from quiesce.generation.coverage import Coverage
from quiesce.generation.running import Ran, Search
from quiesce.generation.saving import FOLDER

SHRUNK_OF_A_RULE_MAX: Final = 4
"""So many sequences that break one rule are shrunk; those after them mostly have the same causes, and are counted."""

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

    @property
    def is_enough(self) -> bool:
        """Whether the search is over: enough was performed, or nothing at all can be."""
        if self.operations_max is not None and self.operations >= self.operations_max:
            return True
        return not self.operations and self.sequences >= IDLE_SEQUENCES_MAX

    def add(self, ran: Ran) -> Failing | None:
        """Enter the next sequence, and return it if it fails."""
        self.operations += ran.operations
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
