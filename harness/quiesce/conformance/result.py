"""What came of a conformance run, as one frozen value."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from quiesce.backend import Description
from quiesce.cases.case import Case
from quiesce.findings import Finding
from quiesce.generation.campaign import CampaignResult
from quiesce.results import Result, Verdict


class Standing(enum.StrEnum):
    """Whether a backend conforms. *Unproven* is neither: too little ran to say so."""

    CONFORMS = "conforms"
    DOES_NOT_CONFORM = "does not conform"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the backend claims, or that a run consists of, and that was not exercised; and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Conformance:
    """A conformance run of one backend, in its parts; each part holds results, some of which were not executed.

    ``contract`` is about the backend itself, ``corpus`` about the cases, ``sweep`` about failures below the
    allocator, ``generated`` about sequences that nobody wrote (``campaigns`` has their coverage). ``found`` are
    failing sequences as cases, shrunk where they were generated. ``description`` is None where there was none.
    """

    backend: str
    seed: int
    description: Description | None
    contract: tuple[Result, ...]
    corpus: tuple[Result, ...] = ()
    sweep: tuple[Result, ...] = ()
    generated: tuple[Result, ...] = ()
    campaigns: tuple[CampaignResult, ...] = ()
    found: tuple[Case, ...] = ()
    not_exercised: tuple[Gap, ...] = ()

    @property
    def results(self) -> tuple[Result, ...]:
        """All results, part by part."""
        return (*self.contract, *self.corpus, *self.sweep, *self.generated)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found broken; not what is known to be broken upstream."""
        return tuple(
            finding for result in self.results if result.verdict is Verdict.FAILED for finding in result.findings
        )

    @property
    def operations(self) -> int:
        """How many operations were performed."""
        return sum(result.operations for result in self.results)

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many results there are of each verdict."""
        counts = Counter(result.verdict for result in self.results)
        return {verdict: counts[verdict] for verdict in Verdict}

    @property
    def unproven(self) -> tuple[str, ...]:
        """Why the run would prove nothing, even without a finding."""
        reasons = []
        if not any(result.verdict is Verdict.PASSED for result in self.corpus):
            reasons.append("no case was executed and passed")
        if not any(campaign.operations for campaign in self.campaigns):
            reasons.append("no generated operation was performed")
        broken = [result.case for result in self.results if result.verdict is Verdict.BROKEN_CASE]
        reasons += [f"the case {case} is broken" for case in broken]
        return tuple(reasons)

    @property
    def standing(self) -> Standing:
        """Whether the backend conforms."""
        if any(result.verdict is Verdict.FAILED for result in self.results):
            return Standing.DOES_NOT_CONFORM
        return Standing.UNPROVEN if self.unproven else Standing.CONFORMS

    @property
    def conforms(self) -> bool:
        """Whether it was exercised, and nothing was found."""
        return self.standing is Standing.CONFORMS

    def text(self) -> str:
        """Return a summary for people: findings first, then what ran, what did not, and what it means."""
        from quiesce.conformance.summary import summarize

        return summarize(self)
