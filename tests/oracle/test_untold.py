"""Races in allocators that tell no order are proven by asking who is done: cases ask, and so do generated sequences."""

from __future__ import annotations

import pytest

from quiesce.backend import Capability
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.cases.catalogue import find_cases, load
from quiesce.execution import run_case
from quiesce.generation.bulk import generate_one
from quiesce.lockstep import run_lockstep
from quiesce.results import Verdict

from .strangers.withholding import Withholding

SEED = 3
OPERATIONS_MAX = 10_000
ORDER = frozenset({Capability.ORDER_LEDGER})
UNTOLD = Withholding(reference(), "tells no order", ORDER)


@pytest.mark.parametrize(
    ("identifier", "fault"),
    [
        ("reuse/reuse_waits_for_the_last_use", "reuse.ignores_guards"),
        ("reuse/uses_on_every_stream_count", "reuse.guards_free_stream_only"),
        ("reuse/squeeze_waits_for_work_in_flight", "reuse.returns_in_flight"),
    ],
)
def test_a_case_proves_a_race_where_nobody_tells_the_order(identifier: str, fault: str) -> None:
    case = next(case for case in load(find_cases([])).cases if case.identifier == identifier)
    untold = Withholding(faulty(fault), fault, ORDER)
    assert [found.invariant for found in run_case(case, untold).findings] == [case.finds]
    assert run_case(case, UNTOLD).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("fault", "invariant"),
    [
        ("reuse.ignores_guards", "memory_is_reused_only_after_its_last_use"),
        ("reuse.guards_free_stream_only", "memory_is_reused_only_after_its_last_use"),
        ("reuse.returns_in_flight", "memory_in_flight_stays_upstream"),
        ("pinned.in_flight_reuse", "memory_is_reused_only_after_its_last_use"),
    ],
)
def test_a_race_is_found_where_nobody_tells_the_order(fault: str, invariant: str) -> None:
    untold = Withholding(faulty(fault), fault, ORDER)
    performed = number = 0
    while performed < OPERATIONS_MAX:
        sequence = generate_one(untold.describe(), SEED, number)
        trial = run_lockstep(untold, sequence.device, sequence.steps(), timeline=False)
        if trial.findings:
            assert trial.findings[0].invariant == invariant
            assert run_lockstep(UNTOLD, sequence.device, sequence.steps(), timeline=False).findings == ()
            return
        performed += trial.operations
        number += 1
    pytest.fail(f"nothing found in {performed} operations")
