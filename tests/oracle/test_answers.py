"""What is said of an answer: the rule, what was permitted, and why."""

from __future__ import annotations

import pytest

from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.allocators.oracle.permits import ANY, ANYTHING, MEMORY, REFUSED, SUCCESS, Permitted, only
from quiesce.allocators.oracle.rules.answers import judge_answer, judge_expectation
from quiesce.backends.reference import faulty
from quiesce.model import operations as ops
from quiesce.model.outcomes import CAPTURE_INVALIDATED, Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported

FREE = ops.Free("a")
ANSWERS: tuple[Outcome, ...] = (Done(), Allocated(64), OutOfMemory(), Rejected("own"), Rejected("other"))


def judged(outcome: Outcome, permitted: Permitted, spoiled_by: str = "") -> tuple[str, str, str]:
    (finding,) = judge_answer(FREE, outcome, permitted, spoiled_by)
    return finding.rule, finding.expected, finding.observed


@pytest.mark.parametrize(
    ("permitted", "text", "permits"),
    [
        (SUCCESS, "success", (True, True, False, False, False)),
        (MEMORY, "success or out of memory", (True, True, True, False, False)),
        (REFUSED, "a rejection", (False, False, False, True, True)),
        (only("own"), "rejected own", (False, False, False, True, False)),
        (only("other", "own"), "rejected other or rejected own", (False, False, False, True, True)),
        (
            Permitted(out_of_memory=True, codes=frozenset({ANY})),
            "success or out of memory or a rejection",
            (True, True, True, True, True),
        ),
        (Permitted(success=False, out_of_memory=True), "out of memory", (False, False, True, False, False)),
        (ANYTHING, "any answer", (True, True, True, True, True)),
    ],
)
def test_what_is_permitted(permitted: Permitted, text: str, permits: tuple[bool, ...]) -> None:
    assert str(permitted) == text
    assert tuple(permitted.permits(answer) for answer in ANSWERS) == permits
    assert permitted.permits(Unsupported("no heap here"))


@pytest.mark.parametrize(
    ("outcome", "permitted", "rule", "observed"),
    [
        (Done(), REFUSED, "invalid_requests_are_refused", "done"),
        (Allocated(64), REFUSED, "invalid_requests_are_refused", "allocated"),
        (OutOfMemory(), SUCCESS, "valid_requests_are_served", "out of memory"),
        (Rejected("own"), SUCCESS, "valid_requests_are_served", "rejected own"),
        (Rejected("own"), only("other"), "errors_are_the_documented_ones", "rejected own"),
    ],
)
def test_an_answer_that_is_not_permitted_breaks_a_rule(
    outcome: Outcome, permitted: Permitted, rule: str, observed: str
) -> None:
    found = judged(outcome, permitted)
    assert found[:2] == (rule, str(permitted))
    assert found[2].startswith(observed)


def test_nothing_is_said_of_what_is_not_supported() -> None:
    assert list(judge_answer(FREE, Unsupported("no heap here"), SUCCESS)) == []


def test_why_a_capture_is_invalid_is_said() -> None:
    invalid = only(CAPTURE_INVALIDATED)
    assert judged(Done(), invalid)[1] == f"rejected {CAPTURE_INVALIDATED}"
    spoiled = judged(Done(), invalid, "free a")[1]
    assert spoiled == f"rejected {CAPTURE_INVALIDATED}, because 'free a' was refused during the capture"
    refused = judged(Rejected(CAPTURE_INVALIDATED), SUCCESS, "free a")[1]
    assert refused == "success: no request was refused since the capture began"
    assert judged(Rejected("own"), SUCCESS, "free a")[1] == "success"


@pytest.mark.parametrize(
    ("expected", "outcome", "rule"),
    [
        ("allocated", OutOfMemory(), "request_fits_but_out_of_memory"),
        ("done", OutOfMemory(), "request_fits_but_out_of_memory"),
        ("allocated", Rejected("own"), "valid_requests_are_served"),
        ("done", Rejected("own"), "valid_requests_are_served"),
        ("out of memory", Allocated(64), "capacity_is_enforced"),
        ("out of memory", Done(), "capacity_is_enforced"),
        ("out of memory", Rejected("own"), "errors_are_the_documented_ones"),
        ("rejected", Done(), "invalid_requests_are_refused"),
        ("rejected", Allocated(64), "invalid_requests_are_refused"),
        ("rejected", OutOfMemory(), "errors_are_the_documented_ones"),
        ("rejected other", Rejected("own"), "errors_are_the_documented_ones"),
    ],
)
def test_an_answer_that_a_case_states_otherwise(expected: str, outcome: Outcome, rule: str) -> None:
    (finding,) = judge_expectation(expected, False, outcome)
    assert (finding.rule, finding.expected) == (rule, expected)
    assert list(judge_expectation(expected, True, outcome)) == []


def test_a_finding_says_what_a_request_takes_and_what_is_free() -> None:
    text = (
        "title: T\nkind: control\nneeds: pool, capacity\npromise: reclaims-before-oom\ndevice: capacity=64MiB\n\n"
        "a = allocate 40MiB\nfree a\nb = allocate 41MiB\n"
    )
    (finding,) = run_case(parse_text(text, "x.case", "x"), faulty("pool.no_squeeze")).findings
    assert finding.expected == (
        "allocated: it takes at most 42,991,616 bytes (41 MiB), and 67,108,864 bytes (64 MiB) are certainly free"
    )
