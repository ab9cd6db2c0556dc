"""Gaps: what a backend claims and nothing exercised, so that nobody takes a claim for something that was tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from quiesce.amounts import counted
from quiesce.backend import Capability, Description, Promise
from quiesce.cases.case import Case
from quiesce.conformance.result import Gap
from quiesce.generation.campaign import CampaignResult
from quiesce.results import Result, Verdict

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
