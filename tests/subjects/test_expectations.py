"""Expectations hold in both directions."""

from __future__ import annotations

from quiesce.allocators.execution import KNOWN_STILL_THERE
from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.subjects.manifest import Expectation
from quiesce.subjects.row import hold_to

NUMBER = "owner/project#1"


def result(case: str, *rules: str, verdict: Verdict | None = None) -> Result:
    findings = tuple(Finding(rule, "this", "that") for rule in rules)
    chosen = verdict or (Verdict.FAILED if rules else Verdict.PASSED)
    return Result(case, "", "", "row", chosen, findings=findings)


def held(expectations: list[Expectation], *results: Result) -> list[tuple[str, Verdict]]:
    return [(each.case, each.verdict) for each in hold_to(expectations, "base", results)]


def test_what_is_expected_is_known_with_its_number() -> None:
    (only,) = hold_to([Expectation("pool/a", "rule", NUMBER)], "base", [result("pool/a", "rule")])
    assert (only.verdict, only.reason) == (Verdict.KNOWN_UPSTREAM, NUMBER)
    assert [finding.rule for finding in only.findings] == ["rule"]


def test_what_nobody_expects_stays_a_failure() -> None:
    assert held([], result("pool/a", "rule"), result("pool/b")) == [
        ("pool/a", Verdict.FAILED),
        ("pool/b", Verdict.PASSED),
    ]


def test_a_green_that_was_expected_red_is_a_failure() -> None:
    (only,) = hold_to([Expectation("pool/a", "rule", NUMBER)], "base", [result("pool/a")])
    assert only.verdict is Verdict.FAILED
    assert only.findings[0].rule == KNOWN_STILL_THERE
    assert "the result is 'passed'" in only.findings[0].observed


def test_a_case_that_did_not_even_run_cannot_meet_an_expectation() -> None:
    expected = [Expectation("pool/a", "rule", NUMBER)]
    assert held(expected, result("pool/a", verdict=Verdict.UNSUPPORTED)) == [("pool/a", Verdict.FAILED)]
    assert held(expected, result("pool/b")) == [("pool/b", Verdict.PASSED), ("pool/a", Verdict.FAILED)]


def test_another_finding_than_the_expected_one_is_a_failure_that_keeps_it() -> None:
    (only,) = hold_to([Expectation("pool/a", "rule", NUMBER)], "base", [result("pool/a", "other")])
    assert only.verdict is Verdict.FAILED
    assert [finding.rule for finding in only.findings] == ["other", KNOWN_STILL_THERE]


def test_of_several_results_one_at_least_shows_it() -> None:
    expected = [Expectation("sweep", "rule", NUMBER)]
    assert held(expected, result("sweep/a/x"), result("sweep/b/y", "rule"), result("sweeping/c")) == [
        ("sweep/a/x", Verdict.PASSED),
        ("sweep/b/y", Verdict.KNOWN_UPSTREAM),
        ("sweeping/c", Verdict.PASSED),
    ]
    assert held(expected, result("sweep/a/x"), result("sweep/b/y"))[0] == ("sweep/a/x", Verdict.FAILED)


def test_a_result_with_one_expected_and_one_unexpected_finding_is_a_failure() -> None:
    expected = [Expectation("program/x", "rule", NUMBER)]
    assert held(expected, result("program/x", "rule", "other")) == [("program/x", Verdict.FAILED)]
    both = [*expected, Expectation("program/x", "other", NUMBER)]
    assert held(both, result("program/x", "rule", "other")) == [("program/x", Verdict.KNOWN_UPSTREAM)]


def test_an_expectation_of_another_variant_is_none() -> None:
    expected = [Expectation("pool/a", "rule", NUMBER, ("other",))]
    assert held(expected, result("pool/a")) == [("pool/a", Verdict.PASSED)]
    assert held(expected, result("pool/a", "rule")) == [("pool/a", Verdict.FAILED)]


def test_what_the_corpus_knows_needs_no_entry() -> None:
    known = result("pool/a", "rule", verdict=Verdict.KNOWN_UPSTREAM)
    assert held([], known) == [("pool/a", Verdict.KNOWN_UPSTREAM)]


def test_a_broken_case_is_never_expected() -> None:
    broken = result("pool/a", "rule", verdict=Verdict.BROKEN_CASE)
    assert held([Expectation("pool/a", "rule", NUMBER)], broken) == [("pool/a", Verdict.BROKEN_CASE)]
