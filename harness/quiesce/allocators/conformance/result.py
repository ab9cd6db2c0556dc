"""What came of a conformance run, as one frozen value, and as text for people.

Gaps are what a backend claims and nothing exercised, so that nobody takes a claim for something that was tested.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.allocators.cases import Case
from quiesce.allocators.generation import CampaignResult
from quiesce.model.backend import Capability, Description, Promise
from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.model.wording import counted
from quiesce.reporting import clean_line, told_once

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


_NO_ALIGNMENT: Final = (
    "the backend states that addresses are multiples of 1 byte, so none was checked; "
    "state `alignment_bytes` in its Description, or `alignment` in a driver program's reply to `hello`"
)


def claims_not_exercised(
    description: Description, cases: Sequence[Case], corpus: Sequence[Result], served: Mapping[Capability, int]
) -> Iterator[Gap]:
    """Yield capabilities of which no request was served, promises that nothing tested, and addresses of any alignment.

    ``capacity-limit`` needs no case: every allocation is judged by it.
    """
    executed = {result.case for result in corpus if result.verdict.executed}
    ran = [case for case in cases if case.identifier in executed]
    needed = frozenset(capability for case in ran for capability in case.needs)
    tested = frozenset(promise for case in ran for promise in case.promises)
    for capability in sorted(description.capabilities - needed):
        if not served.get(capability):
            yield Gap(f"capability '{capability}'", "no request that needs it was served")
    if served.get(Capability.MEMORY):
        tested |= {Promise.CAPACITY_LIMIT}
        if description.alignment_bytes == 1:
            yield Gap("alignment", _NO_ALIGNMENT)
    for promise in sorted(description.promises - tested):
        named = sum(promise in case.promises for case in cases)
        why = "no case tests it" if not named else f"none of {counted(named, 'case')} that test it was executed"
        yield Gap(f"promise '{promise}'", why)


def results_not_exercised(results: Sequence[Result]) -> Iterator[Gap]:
    """Yield rules and trials without a verdict, by reason; what is not even claimed is none of them."""
    reasons: dict[str, list[str]] = {}
    for result in results:
        silent = result.verdict in (Verdict.UNSUPPORTED, Verdict.INCONCLUSIVE)
        if silent and not result.reason.startswith("lacks "):
            reasons.setdefault(result.reason, []).append(result.case)
    for reason, names in reasons.items():
        yield Gap(names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more", reason)


def sequences_not_exercised(campaign: CampaignResult) -> Iterator[Gap]:
    """Yield why sequences ended early, most often first."""
    for why, count in Counter(campaign.unsupported).most_common():
        yield Gap(f"{count:,} of {counted(campaign.sequences, 'generated sequence')}", why)
