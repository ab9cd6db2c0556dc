"""Correct allocators of other policies are never accused: not by the corpus, not by random sequences."""

from __future__ import annotations

import pytest

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.execution import run_case
from quiesce.allocators.lockstep import run_lockstep
from quiesce.model.results import Verdict

from .allocators.bench import Trial
from .allocators.correct import CORRECT
from .sequences import PROFILES, Sequence

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
