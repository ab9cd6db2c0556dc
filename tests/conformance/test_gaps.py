"""What a run leaves out is told, and what was exercised is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.conformance.result import Gap, claims_not_exercised, results_not_exercised
from quiesce.model.backend import Capability, Description, Promise
from quiesce.model.results import Result, Verdict

CASE = load(find_cases([Path("pool/squeeze_before_out_of_memory")])).cases[0]
DESCRIPTION = Description(
    "mine",
    "1",
    frozenset({Capability.MEMORY, Capability.CAPACITY, Capability.TAPE}),
    frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.FLAT_COST}),
)
PASSED = Result(CASE.identifier, "", "", "mine", Verdict.PASSED)


def claims(verdict: Verdict) -> dict[str, str]:
    gaps = claims_not_exercised(DESCRIPTION, [CASE], [replace(PASSED, verdict=verdict)], {Capability.MEMORY: 3})
    return {gap.what: gap.why for gap in gaps}


def test_an_executed_case_exercises_what_it_needs_and_tests() -> None:
    told = claims(Verdict.PASSED)
    assert told.pop("alignment").startswith("the backend states that addresses are multiples of 1 byte")
    assert told == {
        "capability 'tape'": "no request that needs it was served",
        "promise 'flat-cost'": "no case tests it",
    }


def test_addresses_of_any_alignment_are_told() -> None:
    stated = replace(DESCRIPTION, alignment_bytes=16)
    gaps = claims_not_exercised(stated, [CASE], [PASSED], {Capability.MEMORY: 3})
    assert "alignment" not in {gap.what for gap in gaps}
    assert not {gap.what for gap in claims_not_exercised(DESCRIPTION, [CASE], [PASSED], {})} & {"alignment"}


def test_every_allocation_tests_the_limit() -> None:
    limited = replace(DESCRIPTION, promises=frozenset({Promise.CAPACITY_LIMIT}))
    for served, told in ({Capability.MEMORY: 1}, False), ({}, True):
        gaps = claims_not_exercised(limited, [CASE], [PASSED], served)
        assert ("promise 'capacity-limit'" in {gap.what for gap in gaps}) is told


def test_a_case_that_is_not_executed_exercises_nothing() -> None:
    told = claims(Verdict.UNSUPPORTED)
    assert set(told) == {
        "alignment",
        "capability 'capacity'",
        "capability 'tape'",
        "promise 'flat-cost'",
        "promise 'reclaims-before-oom'",
    }
    assert told["promise 'reclaims-before-oom'"] == "none of 1 case that test it was executed"


def test_what_is_not_claimed_is_no_gap() -> None:
    lacking = replace(PASSED, verdict=Verdict.UNSUPPORTED, reason="lacks streams")
    silent = [replace(PASSED, case=name, verdict=Verdict.INCONCLUSIVE, reason="no call failed") for name in "ab"]
    assert list(results_not_exercised([PASSED, lacking, *silent])) == [Gap("a and 1 more", "no call failed")]
