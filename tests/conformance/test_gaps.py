"""What a run leaves out is told, and what was exercised is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from quiesce.backend import Capability, Description, Promise
from quiesce.cases.catalogue import find_cases, load
from quiesce.conformance.gaps import claims_not_exercised, results_not_exercised
from quiesce.conformance.result import Gap
from quiesce.results import Result, Verdict

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
    assert claims(Verdict.PASSED) == {
        "capability 'tape'": "no request that needs it was served",
        "promise 'flat-cost'": "no case tests it",
    }


def test_a_case_that_is_not_executed_exercises_nothing() -> None:
    told = claims(Verdict.UNSUPPORTED)
    assert set(told) == {
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
