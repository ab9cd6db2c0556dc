"""How each verdict becomes an outcome of pytest, and what lands in JUnit."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from .conftest import BAD, Project

POLICY = """\
import dataclasses
from quiesce.model.results import Verdict

def pytest_quiesce_adjust_result(result):
    return dataclasses.replace(result, verdict=Verdict("{verdict}"), reason="{reason}")
"""


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        ("passed", "passed"),
        ("failed", "failed"),
        ("broken case", "failed"),
        ("unsupported", "skipped"),
        ("not promised", "skipped"),
        ("known upstream", "skipped"),
        ("inconclusive", "skipped"),
    ],
)
def test_a_verdict_becomes_an_outcome(project: Project, verdict: str, outcome: str) -> None:
    project.write("conftest.py", POLICY.format(verdict=verdict, reason="because of this"))
    result = project.run("--quiesce-backend=host", "-rs")
    result.assert_outcomes(**{outcome: 1})
    if outcome == "skipped":
        result.stdout.fnmatch_lines([f"SKIPPED [[]1] cases/pool/good.case:1: {verdict}: because of this (on 'host')"])
    if outcome == "failed":
        result.stdout.fnmatch_lines(["*because of this*"])
        result.stdout.no_fnmatch_line("*Traceback*")
        result.stdout.no_fnmatch_line("*.py:*")


def test_a_backend_that_lacks_what_a_case_needs_is_unsupported(project: Project) -> None:
    result = project.run("--quiesce-backend=bare")
    result.assert_outcomes()
    said = "NOTHING WAS EXECUTED on 'bare': 1 unsupported, 0 not promised. This is not a pass. "
    result.stdout.fnmatch_lines([f"{said}Most common: lacks memory (1 case)."])


def test_the_summary_counts_by_backend(project: Project) -> None:
    project.write("cases/pool/refused.case", BAD)
    result = project.run("--quiesce-backend=host", "--quiesce-backend=bare")
    result.stdout.fnmatch_lines(
        [
            "*= quiesce =*",
            "backend  executed  passed  failed  broken  unsupported  not promised  known  inconclusive",
            "bare            0       0       0       0            2             0      0             0",
            "host            2       1       1       0            0             0      0             0",
        ],
        consecutive=True,
    )


def test_a_chosen_backend_on_which_nothing_ran_is_said(project: Project) -> None:
    result = project.run("--quiesce-backend=host", "-k", "no_such_case")
    result.stdout.fnmatch_lines(["NOTHING WAS EXECUTED on 'host'*"])


def test_junit_holds_verdict_backend_upstream_and_rules(project: Project) -> None:
    project.write("cases/pool/refused.case", BAD)
    project.run("--quiesce-backend=host", "--junitxml=junit.xml").assert_outcomes(failed=1, passed=1)
    properties = {
        case.get("classname"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in ElementTree.parse(project.path / "junit.xml").iter("testcase")
    }
    assert properties["cases.pool.good.case"] == {"quiesce_verdict": "passed", "quiesce_backend": "host"}
    refused = properties["cases.pool.refused.case"]
    assert refused.pop("quiesce_rules")
    assert refused == {
        "quiesce_verdict": "failed",
        "quiesce_backend": "host",
        "quiesce_upstream": "example/project#1",
    }


def test_a_policy_that_raises_fails_its_case_and_no_other(project: Project) -> None:
    project.write("cases/pool/other.case", BAD)
    project.write(
        "conftest.py",
        "def pytest_quiesce_adjust_result(result):\n    if 'good' in result.path: raise LookupError('no policy')\n",
    )
    result = project.run("--quiesce-backend=host", "--quiesce-report=out")
    result.assert_outcomes(failed=2)
    assert "its call broke off: LookupError: no policy" in (project.path / "out/report.json").read_text()
