"""Campaigns: they find what is broken, shrink it to a case that fails again, and accuse nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.cases.writer import write_case
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.generation.strategies import allocation_sequences
from quiesce.allocators.lockstep import run_lockstep
from quiesce.backends.host import backend as host
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.model.backend import Backend
from quiesce.model.results import Verdict

FOUND = (
    ("pool.no_squeeze", {"request_fits_but_out_of_memory"}, 6),
    ("pool.reuse_without_unlink", {"live_blocks_do_not_overlap", "blocks_lie_within_backing_memory"}, 8),
    ("pool.ignores_alignment", {"addresses_are_aligned"}, 4),
    ("reuse.ignores_guards", {"memory_is_reused_only_after_its_last_use", "memory_in_flight_is_not_released"}, 12),
    ("pinned.extra_buffer", {"pinned_source_is_copied_directly"}, 3),
    ("tape.never_collects", {"unreachable_nodes_are_collected"}, 8),
)


@pytest.mark.parametrize(("fault", "rules", "operations_max"), FOUND, ids=[fault for fault, _, _ in FOUND])
def test_a_campaign_finds_a_fault_and_saves_a_short_case(fault: str, rules: set[str], operations_max: int) -> None:
    result = run_campaign(faulty(fault), seed=7, operations=60_000)
    assert result.discovery is not None
    case = result.discovery.case
    assert case.finds in rules
    replayed = parse_text(write_case(case), str(Path("saved.case")), "saved")
    again = run_case(replayed, faulty(fault))
    assert again.verdict is Verdict.FAILED
    assert again.findings[0].rule == case.finds
    assert again.operations <= operations_max
    assert run_case(replayed, reference()).verdict is Verdict.PASSED


@pytest.mark.parametrize("hostile", [False, True], ids=["valid", "hostile"])
@pytest.mark.parametrize("backend", [reference(), host()], ids=["reference", "host"])
def test_a_campaign_accuses_no_correct_backend(backend: Backend, hostile: bool) -> None:
    result = run_campaign(backend, seed=11, operations=4_000, hostile=hostile)
    assert result.discovery is None
    assert result.operations >= 4_000


def test_a_seed_reproduces_a_campaign() -> None:
    first, second = (run_campaign(faulty("pool.no_squeeze"), seed=3, operations=8_000) for _ in range(2))
    assert first.discovery is not None
    assert second.discovery is not None
    assert write_case(first.discovery.case) == write_case(second.discovery.case)
    assert first.operations == second.operations


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(allocation_sequences(reference().describe(), hostile=True, records_max=60))
def test_drawn_sequences_never_accuse_the_reference(sequence: GeneratedSequence) -> None:
    trial = run_lockstep(reference(), sequence.device, sequence.steps())
    assert trial.findings == ()


def test_shrinking_takes_no_more_trials_than_are_given() -> None:
    free, bounded = (
        run_campaign(faulty("reuse.ignores_guards"), seed=7, operations=60_000, trials_max=trials_max).discovery
        for trials_max in (None, 20)
    )
    assert free is not None
    assert bounded is not None
    assert bounded.trials <= 21 < free.trials  # and one for the names
    assert (bounded.number, bounded.finding) == (free.number, free.finding)
