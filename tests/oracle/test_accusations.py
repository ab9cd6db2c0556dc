"""Correct allocators of other policies are never accused: not by the corpus, not by random sequences.

And faults of order are proven by queries alone, where a backend tells nothing of it.
"""

from __future__ import annotations

import pytest

from quiesce.backend import Capability
from quiesce.backends.registry import load_backend
from quiesce.cases.case import Case
from quiesce.cases.catalogue import find_cases, load
from quiesce.execution import run_case
from quiesce.generation.campaign import run_campaign
from quiesce.lockstep import run_lockstep
from quiesce.results import Verdict

from .allocators.bench import Trial
from .allocators.correct import CORRECT
from .sequences import PROFILES, Sequence
from .strangers.withholding import Withholding

SEQUENCES = 12
OPERATIONS = 200


@pytest.fixture(scope="module")
def corpus() -> tuple[Case, ...]:
    catalogue = load(find_cases([]))
    assert not catalogue.errors
    return catalogue.cases


@pytest.mark.parametrize("allocator", CORRECT, ids=lambda allocator: allocator.name)
def test_the_corpus_accuses_no_correct_allocator(allocator: Trial, corpus: tuple[Case, ...]) -> None:
    results = [run_case(case, allocator) for case in corpus]
    accused = [(result.case, result.findings) for result in results if result.findings]
    assert accused == []
    assert sum(result.verdict is Verdict.PASSED for result in results) >= 5


@pytest.mark.parametrize("allocator", CORRECT, ids=lambda allocator: allocator.name)
def test_random_sequences_accuse_no_correct_allocator(allocator: Trial) -> None:
    performed = 0
    for seed in range(SEQUENCES):
        profile = PROFILES[seed % len(PROFILES)]
        trial = run_lockstep(allocator, profile, Sequence(seed, allocator.describe(), profile).steps(OPERATIONS))
        assert trial.findings == (), f"seed {seed}"
        performed += trial.operations
    assert performed > SEQUENCES * OPERATIONS / 2


def untold(name: str) -> Withholding:
    return Withholding(load_backend(name), name, frozenset({Capability.ORDER_LEDGER}))


PROVEN_BY_QUERIES = (
    ("reuse/reuse_waits_for_the_last_use", "reuse.ignores_guards"),
    ("reuse/squeeze_waits_for_work_in_flight", "reuse.returns_in_flight"),
)


@pytest.mark.parametrize(("identifier", "fault"), PROVEN_BY_QUERIES, ids=[fault for _, fault in PROVEN_BY_QUERIES])
def test_a_query_proves_what_no_order_is_told_of(identifier: str, fault: str, corpus: tuple[Case, ...]) -> None:
    case = next(case for case in corpus if case.identifier == identifier)
    assert [found.invariant for found in run_case(case, untold(f"reference:{fault}")).findings] == [case.finds]
    assert run_case(case, untold("reference")).verdict is Verdict.PASSED


def test_generated_sequences_ask_where_no_order_is_told() -> None:
    result = run_campaign(untold("reference:reuse.ignores_guards"), seed=5, operations=6_000, hostile=False)
    assert result.discovery is not None
    assert result.discovery.finding.invariant == "memory_is_reused_only_after_its_last_use"
