"""What came of a conformance run, as one frozen value, and as text for people."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.amounts import counted
from quiesce.backend import Description
from quiesce.cases.case import Case
from quiesce.findings import Finding
from quiesce.generation.campaign import CampaignResult
from quiesce.reporting.repetition import told_once
from quiesce.reporting.text import clean_line
from quiesce.results import Result, Verdict

LACKING_SHOWN_MAX: Final = 3
"""So many capabilities are shown of those that unsupported cases lack."""


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

    @property
    def conclusion(self) -> str:
        """What the run shows, as one sentence."""
        return _conclusion(self)

    def account(self) -> str:
        """Return the findings, what ran and what did not."""
        return _account(self)

    def text(self) -> str:
        """Return a summary for people: the account, and what it means."""
        return f"{self.account()}{self.conclusion}\n"


def _account(conformance: Conformance) -> str:
    lines = [line for failure in told_once(conformance.results) for line in (failure.text(), "")]
    name, version = clean_line(conformance.backend), conformance.description and conformance.description.version
    lines.append(f"{name}{f', version {clean_line(version)}' if version else ''}, seed {conformance.seed}")
    lines += [
        f"  contract:   {_counts(conformance.contract, 'rule')}",
        f"  corpus:     {_counts(conformance.corpus, 'case')}",
        f"  sweep:      {_counts(conformance.sweep, 'trial')}",
    ]
    for campaign in conformance.campaigns:
        kind = "hostile" if campaign.hostile else "valid"
        reached = len(campaign.coverage.pairs)
        lines.append(
            f"  generated:  {counted(campaign.operations, 'operation')} in "
            f"{counted(campaign.sequences, f'{kind} sequence')}, "
            f"{counted(len(campaign.coverage.actions()), 'kind')} of request in {counted(reached, 'situation')}"
        )
    if conformance.not_exercised:
        lines.append("not exercised:")
        lines += [f"  {clean_line(gap.what)}: {clean_line(gap.why)}" for gap in conformance.not_exercised]
    return "\n".join(lines) + "\n"


def _conclusion(conformance: Conformance) -> str:
    name = clean_line(conformance.backend)
    if conformance.standing is Standing.DOES_NOT_CONFORM:
        return f"{name} {conformance.standing}: {_where_found(conformance)}"
    if conformance.standing is Standing.UNPROVEN:
        return (
            f"{name} is {conformance.standing}: {'; '.join(map(clean_line, conformance.unproven))}. This is not a pass."
        )
    held = sum(result.verdict is Verdict.PASSED for result in conformance.corpus)
    operations = sum(campaign.operations for campaign in conformance.campaigns)
    return (
        f"{name} {conformance.standing}: {counted(held, 'case')} {'holds' if held == 1 else 'hold'}, and "
        f"{counted(operations, 'generated operation')} {'breaks' if operations == 1 else 'break'} no rule"
    )


def _where_found(conformance: Conformance) -> str:
    """Return ``2 findings in the contract and 1 in the corpus``."""
    parts = {
        "the contract": conformance.contract,
        "the corpus": conformance.corpus,
        "the sweep": conformance.sweep,
        "generated sequences": conformance.generated,
    }
    counts = {
        part: sum(len(result.findings) for result in results if result.verdict is Verdict.FAILED)
        for part, results in parts.items()
    }
    first, *others = [(part, count) for part, count in counts.items() if count]
    said = [f"{counted(first[1], 'finding')} in {first[0]}", *(f"{count:,} in {part}" for part, count in others)]
    return ", ".join(said[:-1]) + (" and " if others else "") + said[-1]


def _counts(results: Sequence[Result], thing: str) -> str:
    counts = Counter(result.verdict for result in results)
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    return f"{counted(len(results), thing)}: {', '.join(parts)}{_lacking(results)}" if results else "nothing ran"


def _lacking(results: Iterable[Result]) -> str:
    """Say what the unsupported ones lack most often. The report has all of it, case by case."""
    lacking: Counter[str] = Counter()
    for result in results:
        if result.verdict is Verdict.UNSUPPORTED and result.reason.startswith("lacks "):
            lacking.update(result.reason.removeprefix("lacks ").split(", "))
    ordered = sorted(lacking.items(), key=lambda each: (-each[1], each[0]))
    shown = ", ".join(f"{what} {count}" for what, count in ordered[:LACKING_SHOWN_MAX])
    more = f" and {len(ordered) - LACKING_SHOWN_MAX} more" if len(ordered) > LACKING_SHOWN_MAX else ""
    return f" (lacks {shown}{more})" if shown else ""
