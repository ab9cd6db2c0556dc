"""What GitHub Actions is told: lines that it reads as annotations, and a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from quiesce.model.findings import CallSite, Finding, Frame
from quiesce.model.results import LEAK_CHECK, Result, Verdict
from quiesce.reporting.github import annotation_lines, checkout, finding_lines, summary
from quiesce.reporting.leak_checks import NAMES_MAX

from .test_leak_checks import finding

LEAKS = finding("memory leak (Python)", "bytes", 8112.0, "src/a,b.py:14: KEPT.append(1)")


def checked(name: str, verdict: Verdict, *findings: Finding, reason: str = "") -> Result:
    return Result(f"tests/test_it.py::{name}", "", "tests/test_it.py", LEAK_CHECK, verdict, reason, findings)


def test_each_leak_is_an_error_at_its_line(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src/a,b.py").write_text("", encoding="utf-8")
    foreign = replace(LEAKS, allocated_by="/usr/lib/python/x.py:3: X", line=7)
    results = [
        checked("test_small[a:b]", Verdict.FAILED, replace(LEAKS, kept="lib._ALL (list)\nlib._TWO (list)")),
        checked("test_foreign", Verdict.FAILED, foreign),
        checked("test_open", Verdict.INCONCLUSIVE, reason="round 2 failed\n100%"),
        checked("test_clean", Verdict.PASSED),
        checked("test_known", Verdict.KNOWN_UPSTREAM, LEAKS),
        checked("test_fails", Verdict.FAILED, reason="the test itself fails"),
    ]
    said = "leaks 8,112 B/round (Python) at src/a,b.py:14, kept by lib._ALL"
    assert list(annotation_lines(results, [project, tmp_path], tmp_path)) == [
        "::error file=project/tests/test_it.py,line=7,title=tests/test_it.py%3A%3Atest_foreign::"
        "leaks 8,112 B/round (Python) at /usr/lib/python/x.py:3",
        f"::error file=project/src/a%2Cb.py,line=14,title=tests/test_it.py%3A%3Atest_small[a%3Ab]::{said}",
        "::warning file=project/tests/test_it.py,line=1,title=tests/test_it.py%3A%3Atest_open::"
        "no leak verdict: round 2 failed 100%25",
    ]


def test_each_finding_of_a_case_is_an_error_at_its_line(tmp_path: Path) -> None:
    fits = Finding("request_fits", "memory", "none,\n100%", 2, 9, kind="missing retry")
    failed = Result("pool/a", "", "cases/pool/a.case", "host", Verdict.FAILED, findings=(fits, replace(fits, kind="")))
    results = [failed, checked("test_leaks", Verdict.FAILED, LEAKS), replace(failed, verdict=Verdict.KNOWN_UPSTREAM)]
    where, what = "::error file=cases/pool/a.case,line=9,title=", "request_fits: expected memory; observed none, 100%25"
    assert list(finding_lines(results, [tmp_path], tmp_path)) == [
        f"{where}missing retry in pool/a::{what}",
        f"{where}request_fits in pool/a::{what}",
    ]


def test_a_finding_of_a_program_is_at_the_line_of_its_own_that_made_the_call(tmp_path: Path) -> None:
    ctypes = Frame("call", "/usr/lib/python3/ctypes.py", 1, folded="ctypes")
    first, second = (Frame("main", str(tmp_path / "race.py"), line) for line in (8, 9))
    sites = (CallSite("earlier use", "f", 3, (ctypes, first)), CallSite("later use", "f", 4, (ctypes, second)))
    race = Finding("uses_are_ordered", "an order", "none", 4, kind="race", call_sites=sites)
    unknown = replace(race, call_sites=(CallSite("later use", "f", 4, (ctypes,)),))
    program = Result("./a.out", "", "", "cuda:12", Verdict.FAILED, findings=(race, replace(race, operation_index=None)))
    what = "title=race in ./a.out::uses_are_ordered: expected an order; observed none"
    assert list(finding_lines([program, replace(program, findings=(unknown,))], [tmp_path], tmp_path)) == [
        f"::error file=race.py,line=9,{what}",
        f"::error file=race.py,line=8,{what}",
        f"::error {what}",
    ]


def test_only_a_step_of_github_actions_has_a_checkout(tmp_path: Path) -> None:
    assert checkout(tmp_path, {}) is None
    assert checkout(tmp_path, {"GITHUB_ACTIONS": "true"}) == tmp_path
    assert checkout(tmp_path, {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/w"}) == Path("/w")


def test_the_summary_is_a_table_with_the_largest_leak_first() -> None:
    small = finding("memory leak (Python)", "bytes", 10.0, "src/a.py:1: X")
    results = [checked("test_a|b", Verdict.FAILED, small), checked("test_c", Verdict.FAILED, LEAKS)]
    lines = summary(results).splitlines()
    assert lines[:5] == [
        "### Leak checks",
        "",
        "2 tests checked for leaks: 2 leak",
        "",
        "| test | what | where |",
    ]
    assert [line.partition(" |")[0] for line in lines[6:8]] == [
        "| tests/test\\_it.py::test\\_c",
        "| tests/test\\_it.py::test\\_a\\|b",
    ]
    assert "|---" not in summary([checked("test_clean", Verdict.PASSED)])
    many = [checked(f"test_{number}", Verdict.FAILED, small) for number in range(NAMES_MAX + 2)]
    assert "and 2 more" in summary(many)
