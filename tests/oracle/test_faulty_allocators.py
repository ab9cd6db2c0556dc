"""Faulty allocators of many policies are caught by generated sequences alone, for what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.seeds import sampled

from quiesce.allocators.cases.expansion import PerformStep, expand
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.cases.writer import write_case
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.lockstep import run_lockstep
from quiesce.allocators.oracle.rules.memory import live_blocks_do_not_overlap
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, DeviceProfile
from quiesce.model.outcomes import Allocated
from quiesce.model.results import Verdict

from .allocators.faulty import FAULTY, Faulty

OPERATIONS_MAX = 25_000
SHRUNK = {
    "BareRemainder": 9,
    "EventsAreForgotten": 3,
    "FreesTwice": 3,
    "HandlesAreStreams": 8,
    "LosesTheTail": 2,
    "PoolsShareADevice": 3,
    "SearchesAllItEverMade": 48,
    "TwoDependencies": 14,
}
"""Some of them, and how many requests are left at most."""


def first_failing(backend: Backend, seed: int, *, hostile: bool) -> tuple[GeneratedSequence, str]:
    performed = number = 0
    while performed < OPERATIONS_MAX:
        sequence = generate_one(backend.describe(), seed, number, hostile=hostile)
        trial = run_lockstep(backend, sequence.device, sequence.steps(), timeline=False)
        if trial.findings:
            return sequence, trial.findings[0].rule
        performed += trial.operations
        number += 1
    pytest.fail(f"nothing found in {performed} operations")


@pytest.mark.parametrize(
    "faulty", sampled([each for each in FAULTY if not each.rare], 2), ids=lambda faulty: faulty.name
)
def test_a_faulty_allocator_is_caught_and_its_correct_sibling_is_not(faulty: Faulty) -> None:
    sequence, rule = first_failing(faulty.backend, faulty.seed, hostile=faulty.hostile)
    assert rule in faulty.accusations
    assert run_lockstep(faulty.correct, sequence.device, sequence.steps(), timeline=False).findings == ()


def test_a_block_at_null_is_not_taken_for_one_that_overlaps() -> None:
    null = next(each for each in FAULTY if each.name == "NullWhereThereIsNone")
    steps = [PerformStep(ops.Allocate("a", 1), None, 1), PerformStep(ops.Allocate("b", 1 << 50), None, 2)]
    trial = run_lockstep(null.backend, DeviceProfile(), steps)
    assert [finding.rule for finding in trial.findings] == ["blocks_lie_in_the_address_space"]


@pytest.mark.parametrize(
    ("size", "address", "observed"),
    [(1, 64, "1 byte that begins at its first"), (2, 65, "2 bytes that begin 1 byte after its first")],
)
def test_what_overlaps_is_counted_in_bytes_or_is_one(size: int, address: int, observed: str) -> None:
    other = SimpleNamespace(slot="a", address=64, size_bytes=size, made_by=0)
    change = SimpleNamespace(
        overlapped=(other,), outcome=Allocated(address), made=SimpleNamespace(size_bytes=size), operation_index=1
    )
    (finding,) = live_blocks_do_not_overlap(cast(Any, None), cast(Any, change))
    assert finding.observed == observed
    assert finding.expected == f"memory outside the {'1 byte' if size == 1 else '2 bytes'} of 'a'"


@pytest.mark.long
@pytest.mark.parametrize("faulty", [each for each in FAULTY if each.name in SHRUNK], ids=lambda faulty: faulty.name)
def test_what_is_found_is_saved_short_and_fails_again(faulty: Faulty) -> None:
    result = run_campaign(faulty.backend, seed=faulty.seed, operations=OPERATIONS_MAX, hostile=faulty.hostile)
    assert result.discovery is not None
    saved = parse_text(write_case(result.discovery.case), str(Path("saved.case")), "saved")
    again = run_case(saved, faulty.backend)
    assert again.verdict is Verdict.FAILED
    assert again.findings[0].rule == saved.finds
    assert sum(isinstance(step, PerformStep) for step in expand(saved)) <= SHRUNK[faulty.name]
    assert run_case(saved, faulty.correct).findings == ()
