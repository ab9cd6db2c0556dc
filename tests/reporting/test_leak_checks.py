"""What is said of leak checks: the short line of a leak, and the tests without a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiesce.model.findings import Finding, RoundReadings
from quiesce.model.results import LEAK_CHECK, Result, Verdict
from quiesce.reporting.json_values import record_of, value_from
from quiesce.reporting.leak_checks import NAMES_MAX, leak_check_lines, leak_in_short
from quiesce.reporting.text import finding_text


def finding(kind: str, unit: str, per_round: float, origin: str) -> Finding:
    readings = RoundReadings("a gauge", unit, 7, (0, 1, 2), 7, per_round)
    return Finding("rule", "nothing grows", "it grows", allocated_by=origin, kind=kind, readings=readings)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            finding("memory leak (Python)", "bytes", 8112.4, "mylib/__init__.py:14: KEPT.append(1)"),
            "leaks 8,112 B/round (Python) at mylib/__init__.py:14",
        ),
        (finding("memory leak (C heap)", "bytes", 0.5, "native code"), "leaks 0.50 B/round (C heap)"),
        (finding("thread leak", "threads", 1, "thread 'one' in a b.py:3"), "leaks 1 thread/round at a b.py:3"),
        (finding("leak (own)", "rows", 2, ""), "leaks 2 rows/round"),
        (
            replace(finding("thread leak", "threads", 1, "b.py:3"), kept="lib._CACHE (dict, 350 entries)\nlib._TWO"),
            "leaks 1 thread/round at b.py:3, kept by lib._CACHE",
        ),
        (
            replace(finding("memory leak (Python)", "bytes", 8, "b.py:3"), kept="closure variable 'x' of f (dict, 9)"),
            "leaks 8 B/round (Python) at b.py:3, kept by closure variable 'x' of f",
        ),
        (
            replace(finding("thread leak", "threads", 1, ""), kept="running thread 'one (f)' (list, 350 entries)"),
            "leaks 1 thread/round, kept by running thread 'one (f)'",
        ),
        (
            replace(finding("thread leak", "threads", 1, ""), kept="no Python object keeps it: native memory"),
            "leaks 1 thread/round",
        ),
        (Finding("rule", "it lives", "it died"), "leaks"),
    ],
)
def test_a_leak_in_short(found: Finding, said: str) -> None:
    assert leak_in_short([found]) == said


def test_what_keeps_a_leak_has_a_line_of_its_own() -> None:
    kept = replace(finding("memory leak (Python)", "bytes", 8, "a.py:1: X"), kept="lib._CACHE (dict)\nlib._ALL (list)")
    lines = finding_text(check(1), kept).splitlines()
    assert lines[lines.index("  allocated: a.py:1: X") + 1 :][:2] == [
        "  kept by:   lib._CACHE (dict)",
        "             lib._ALL (list)",
    ]
    assert value_from(Finding, record_of(kept)) == kept


def check(number: int) -> Result:
    return Result(f"t::{number}", "", "t", LEAK_CHECK, Verdict.INCONCLUSIVE, reason="round 2 failed")


def test_the_largest_leak_comes_first_and_what_is_left_out_last() -> None:
    results = [
        replace(check(1), verdict=Verdict.UNSUPPORTED, reason="its marker says so: it fills a cache"),
        replace(check(2), verdict=Verdict.UNSUPPORTED, reason="the test was skipped: no device"),
        check(3),
        *(
            replace(check(number), verdict=Verdict.FAILED, findings=(finding("", "bytes", number, ""),))
            for number in (10, 30, 20)
        ),
    ]
    assert leak_check_lines(results) == [
        "t::30 leaks 30 B/round",
        "t::20 leaks 20 B/round",
        "t::10 leaks 10 B/round",
        "t::3 has no verdict: round 2 failed",
        "t::1 is not checked: it fills a cache",
    ]


def test_tests_without_a_verdict_are_named_with_the_reason() -> None:
    assert leak_check_lines([check(1)]) == ["t::1 has no verdict: round 2 failed"]
    assert leak_check_lines(map(check, range(NAMES_MAX + 2)))[-1] == "  and 2 more"


def test_tests_without_a_verdict_for_one_reason_are_named_in_a_group() -> None:
    others = [replace(check(number), reason="its 10 s are over") for number in (7, 8)]
    assert leak_check_lines([*others, *map(check, (4, 2, 3))]) == [
        "3 tests have no verdict: round 2 failed",
        "  t::2",
        "  t::3",
        "  t::4",
        "t::7 has no verdict: its 10 s are over",
        "t::8 has no verdict: its 10 s are over",
    ]


def test_files_that_stay_are_named_of_a_test_that_passes() -> None:
    files = "it leaves 1 file a round in the temporary folder, such as tmpx, at a.py:8"
    results = [replace(check(1), verdict=Verdict.PASSED, reason=files), replace(check(2), verdict=Verdict.PASSED)]
    assert leak_check_lines(results) == ["t::1 leaves 1 file a round in the temporary folder, such as tmpx, at a.py:8"]
