"""All tests checked at once: those that can't be repeated end as they would without a check, and are named."""

from __future__ import annotations

import json

import pytest

from .conftest import Project

PATIENTLY = ("--quiesce-leak", "--quiesce-leak-rounds=12", "--quiesce-leak-seconds=120")
"""So that a busy machine changes no verdict."""

SUITE = """
import pytest

KEPT, RUNS = [], []

def test_keeps(): KEPT.append(bytes(8000))

def test_clean(): pass

def test_runs_once():
    RUNS.append(1)
    assert len(RUNS) == 1

@pytest.mark.leak(skip="it fills a cache")
def test_left_out(): KEPT.append(bytes(8000))

def test_fails():
    print("shown once")
    assert KEPT == RUNS

@pytest.mark.xfail(reason="not yet")
def test_not_yet(): assert not RUNS

@pytest.mark.xfail(strict=True, reason="not yet")
def test_is_fixed(): pass

def test_in_parts(subtests):
    with subtests.test("one"): assert not RUNS
"""

NO_VERDICT = "test_it.py::test_runs_once has no verdict: round 2 failed, although the rounds before it passed: call: *"


def outcomes(project: Project) -> dict[str, tuple[str, str]]:
    lines = (project.path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if "case" in record]
    return {each["case"].partition("::")[2]: (each["verdict"], each["reason"]) for each in records}


@pytest.mark.long
def test_each_test_gets_the_verdict_and_the_outcome_that_it_should(project: Project) -> None:
    project.write("test_it.py", SUITE)
    result = project.run_apart("test_it.py", *PATIENTLY, "--quiesce-report=out")
    assert result.parseoutcomes() == {
        "failed": 5,  # of these, one is a subtest, and one the test that it is part of
        "passed": 3,
        "xfailed": 1,
        "warnings": 1,
    }
    said = outcomes(project)
    assert {name: verdict for name, (verdict, _) in said.items()} == {
        "test_keeps": "failed",
        "test_clean": "passed",
        "test_runs_once": "inconclusive",
        "test_left_out": "unsupported",
        "test_fails": "failed",
        "test_not_yet": "unsupported",
        "test_is_fixed": "failed",
        "test_in_parts": "failed",
    }
    assert said["test_left_out"][1] == "its marker says so: it fills a cache"
    assert said["test_is_fixed"][1] == "the test itself fails"
    result.stdout.fnmatch_lines(
        [
            "* LeakCheckWarning: no leak verdict: round 2 failed, *",
            "test_it.py::test_keeps leaks * B/round (Python) at test_it.py:6, kept by test_it.KEPT",
            NO_VERDICT,
            "test_it.py::test_left_out is not checked: it fills a cache",
            "6 tests checked for leaks: 1 clean, 1 leaks, 3 fail without a leak, 1 has no verdict; 2 not *",
            "FAILED test_it.py::test_keeps - leaks * B/round (Python) at test_it.py:6*",
        ]
    )
    assert str(result.stdout).count("shown once") == 2, "in the source and in what was printed"
    assert "not all runs of this one ended alike" not in str(result.stdout)


@pytest.mark.long
@pytest.mark.parametrize("on_github", [True, False])
def test_github_is_told_where_a_leak_is(project: Project, monkeypatch: pytest.MonkeyPatch, on_github: bool) -> None:
    project.write("test_it.py", "KEPT = []\ndef test_keeps():\n    KEPT.append(bytes(8000))\n")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    if on_github:
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = project.run_apart("test_it.py", *PATIENTLY, "--quiesce-report=out")
    annotation = "::error file=test_it.py,line=3,title=test_it.py%3A%3Atest_keeps::leaks 8,* B/round (Python) at *"
    told = [line for line in result.outlines if line.startswith("::")]
    assert len(told) == on_github
    pytest.LineMatcher(told).fnmatch_lines([annotation] * on_github)
    assert (project.path / "summary.md").is_file() == on_github
    (run,) = json.loads((project.path / "out/leaks.sarif").read_text(encoding="utf-8"))["runs"]
    assert len(run["results"]) == 1


ONCE = "RUNS = []\ndef test_runs_once():\n    RUNS.append(1)\n    assert len(RUNS) == 1\n"


@pytest.mark.parametrize(
    ("arguments", "is_strict"),
    [((), False), (("--quiesce-strict",), True), (("-W", "error", "-p", "no:cacheprovider"), False)],
)
def test_only_a_strict_run_fails_a_test_without_a_verdict(
    project: Project, arguments: tuple[str, ...], *, is_strict: bool
) -> None:
    project.write("test_it.py", ONCE)
    result = project.run("test_it.py", "-o", "quiesce_leak=all", *arguments)
    result.assert_outcomes(passed=int(not is_strict), failed=int(is_strict), warnings=int(not is_strict))
    result.stdout.fnmatch_lines([NO_VERDICT])


@pytest.mark.parametrize("place", ["setup", "teardown"])
def test_a_failure_beside_the_call_is_reported_there_once(project: Project, place: str) -> None:
    body = "raise OSError('no')\n    yield" if place == "setup" else "yield\n    raise OSError('no')"
    project.write("test_it.py", f"import pytest\n@pytest.fixture\ndef it():\n    {body}\ndef test_it(it): pass\n")
    result = project.run("test_it.py", "--quiesce-leak")
    result.assert_outcomes(errors=1, passed=int(place == "teardown"))
    assert str(result.stdout).count(f"ERROR at {place} of test_it") == 1


@pytest.mark.long
def test_the_first_run_is_the_one_in_reports(project: Project) -> None:
    """Its properties and its time, of which the time is that of one run."""
    text = "import time\ndef test_it(record_property):\n    record_property('a', 1)\n    time.sleep(0.05)\n"
    project.write("test_it.py", text)
    project.run("test_it.py", "--quiesce-leak", "--junit-xml=out.xml", "-o", "junit_family=xunit1").assert_outcomes(
        passed=1
    )
    said = (project.path / "out.xml").read_text(encoding="utf-8")
    assert said.count('<property name="a" value="1" />') == 1
    seconds = float(said.partition("<testcase ")[2].partition(' time="')[2].partition('"')[0])
    assert 0.05 <= seconds < 0.15


@pytest.mark.long
def test_what_a_doctest_and_a_unittest_do_once_is_theirs(project: Project) -> None:
    unit = "import unittest\nclass TestIt(unittest.TestCase):\n    runs = 0\n    def test_it(self):\n"
    unit += "        type(self).runs += 1\n        self.assertEqual(self.runs, 1)\n"
    project.write("test_it.py", f'"""\n>>> 1 + 1\n2\n"""\n{unit}')
    result = project.run("test_it.py", "--quiesce-leak", "--doctest-modules")
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["2 tests checked for leaks: 1 clean, 1 has no verdict; * s"])
