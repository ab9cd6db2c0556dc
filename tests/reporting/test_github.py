"""What GitHub Actions is told: lines that it reads as annotations, and a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from quiesce.findings import Finding
from quiesce.reporting.github import annotation_lines, summary
from quiesce.reporting.leak_checks import NAMES_MAX
from quiesce.results import LEAK_CHECK, Result, Verdict

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
