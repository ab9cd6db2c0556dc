from __future__ import annotations

import pytest

from quiesce.model.findings import Finding
from quiesce.model.results import LEAK_CHECK, Result, Verdict
from quiesce.reporting.terminal import conclusions

LEAK = Finding("a_repeated_test_leaves_nothing_behind", "nothing", "64 bytes")


def case(name: str, backend: str, verdict: Verdict, **more: object) -> Result:
    return Result(name, "T", f"cases/{name}.case", backend, verdict, **more)  # type: ignore[arg-type]


def check(name: str, verdict: Verdict, *findings: Finding, rounds: int = 0) -> Result:
    return Result(name, "T", "test_it.py", LEAK_CHECK, verdict, findings=findings, rounds=rounds)


def test_what_holds_is_counted_once_on_all_backends() -> None:
    results = [case(name, backend, Verdict.PASSED) for name in ("a", "b") for backend in ("host", "reference")]
    idle = case("c", "host", Verdict.UNSUPPORTED)
    assert conclusions([*results, idle]) == ("2 cases passed on 2 backends",)
    assert conclusions(results[:1]) == ("1 case passed on host",)


def test_historic_bugs_count_only_where_they_were_switched_on_and_caught() -> None:
    bugs = [
        case("a", "reference", Verdict.PASSED, upstream=("x/y#1",), caught="pool.leaks"),
        case("b", "reference", Verdict.PASSED, upstream=("x/y#2",), caught="pool.leaks"),
    ]
    caught = "1 historic bug, switched on in the reference, was caught"
    assert conclusions(bugs) == (f"2 cases passed on reference; {caught}",)
    other = case("c", "reference", Verdict.PASSED, caught="tape.orphans")
    own = case("d", "host", Verdict.PASSED, upstream=("me/mine#7",))
    each = "2 historic bugs, switched on in the reference, were each caught"
    assert conclusions([*bugs, other, own]) == (f"4 cases passed on 2 backends; {each}",)
    assert conclusions([own]) == ("1 case passed on host",)


def test_a_failure_comes_instead_of_what_holds() -> None:
    failed = [case("a", "opencl", Verdict.FAILED), case("b", "opencl", Verdict.FAILED)]
    passed = [case("c", "opencl", Verdict.PASSED), case("a", "host", Verdict.PASSED)]
    assert conclusions([*failed, *passed]) == ("2 of 3 cases failed on opencl",)
    more = [case("a", "host", Verdict.FAILED), case("d", "no backend", Verdict.BROKEN_CASE)]
    assert conclusions([*failed, *more]) == ("2 of 3 cases failed: 1 on host, 2 on opencl; 1 of 3 cases is broken",)


def test_known_and_inconclusive_cases_are_said() -> None:
    results = [case("a", "opencl", Verdict.KNOWN_UPSTREAM), case("b", "host", Verdict.INCONCLUSIVE)]
    assert conclusions(results) == ("1 failure known upstream on opencl; 1 inconclusive on host",)


@pytest.mark.parametrize("verdict", [Verdict.UNSUPPORTED, Verdict.NOT_PROMISED])
def test_nothing_executed_proves_nothing(verdict: Verdict) -> None:
    assert conclusions([case("a", "host", verdict)]) == ("nothing was executed: no verdict",)
    assert conclusions([]) == ("nothing was executed: no verdict",)


def test_programs_are_no_cases() -> None:
    program = Result("train.py", "", "train.py", "cuda:12", Verdict.PASSED)
    assert conclusions([program]) == ("1 result from 1 backend: no failures",)


def test_leak_checks_have_a_line_of_their_own() -> None:
    passed = [check("a", Verdict.PASSED), check("b", Verdict.PASSED)]
    assert conclusions(passed) == ("2 tests checked for leaks: 2 clean",)
    assert conclusions([*passed[:1], case("a", "host", Verdict.PASSED)]) == (
        "1 case passed on host",
        "1 test checked for leaks: 1 clean",
    )


def test_tests_that_leak_and_that_fail_are_told_apart() -> None:
    checks = [check("t::one", Verdict.FAILED, LEAK), check("t::two", Verdict.FAILED), check("t::three", Verdict.PASSED)]
    assert conclusions(checks) == ("3 tests checked for leaks: 1 clean, 1 leaks, 1 fails without a leak",)


def test_leak_checks_without_a_verdict_are_counted() -> None:
    checks = [
        check("a", Verdict.KNOWN_UPSTREAM, LEAK),
        check("b", Verdict.INCONCLUSIVE),
        check("c", Verdict.UNSUPPORTED),
        check("d", Verdict.UNSUPPORTED),
    ]
    assert conclusions(checks) == ("2 tests checked for leaks: 1 leaks as expected, 1 has no verdict; 2 not checked",)
