"""The matrix as text: what is red where, and what that means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.subjects.manifest import Release, Subject, SubjectKind
from quiesce.subjects.matrix import Matrix
from quiesce.subjects.parser import read_manifest
from quiesce.subjects.row import Row, RowResult

Write = Callable[..., Path]


@pytest.fixture
def subject(write_subject: Write) -> Subject:
    return read_manifest(write_subject() / "subject.toml")


def row(subject: Subject, version: str, label: str, *, listed: bool = True, **verdicts: Verdict) -> RowResult:
    results = []
    for case, verdict in verdicts.items():
        red = verdict in (Verdict.FAILED, Verdict.KNOWN_UPSTREAM)
        findings = (Finding("a_rule", "this", "that", evidence="it said so"),) if red else ()
        reason = "owner/project#1" if verdict is Verdict.KNOWN_UPSTREAM else ""
        name = f"pool/{case}"
        results.append(Result(name, "", "", f"host/example {version}", verdict, reason=reason, findings=findings))
    release = Release(version, label, expectations=() if listed else None)
    return RowResult(Row(subject, release, subject.variants[0]), tuple(results))


def test_a_case_that_is_red_somewhere_has_a_line_with_every_release(subject: Subject) -> None:
    matrix = Matrix(
        [
            row(subject, "1.0", "One", a=Verdict.KNOWN_UPSTREAM, b=Verdict.PASSED, c=Verdict.UNSUPPORTED),
            row(subject, "2.0", "", a=Verdict.PASSED, b=Verdict.PASSED),
        ]
    )
    assert matrix.text().splitlines() == [
        "host/example  1.0 One  2.0    finding  upstream",
        "pool/a        red      green  a_rule   owner/project#1",
        "",
        "subject       release  green  red as expected  unexpected  broken  unsupported  not promised  inconclusive",
        "host/example  1.0 One      1                1           0       0            1             0             0",
        "host/example  2.0          2                0           0       0            0             0             0",
        "",
        "4 results from 2 rows: all as expected",
    ]


def test_what_is_not_as_expected_comes_first_and_is_told_whole(subject: Subject) -> None:
    text = Matrix([row(subject, "1.0", "", a=Verdict.FAILED)]).text()
    assert text.startswith("pool/a: on 'host/example 1.0'\n  rule:      a_rule\n")
    assert "it said so" in text
    assert "pool/a        UNEXPECTED" in text
    assert text.endswith("1 result from 1 row: 1 not as expected\n")


def test_in_a_release_that_nobody_listed_a_failure_is_a_finding(subject: Subject) -> None:
    new = row(subject, "9.0", "", listed=False, a=Verdict.FAILED)
    assert "pool/a        finding" in Matrix([new]).text()
    assert Matrix([new]).text().endswith("1 row: 1 failed in releases that no manifest lists\n")
    both = Matrix([row(subject, "1.0", "", a=Verdict.FAILED), new]).text()
    assert both.endswith("2 rows: 1 not as expected, 1 failed in releases that no manifest lists\n")


def test_a_model_is_called_one(subject: Subject) -> None:
    model = replace(subject, kind=SubjectKind.MODEL)
    assert "host/example (a model)" in Matrix([row(model, "1.0", "", a=Verdict.KNOWN_UPSTREAM)]).text()


def test_what_did_not_run_is_no_pass(subject: Subject) -> None:
    passed = row(subject, "1.0", "", a=Verdict.PASSED)
    skipped = Matrix([passed], {"host/other 1.0": "there is no cargo; apt-get install cargo"}).text()
    assert "skipped 'host/other 1.0': there is no cargo; apt-get install cargo" in skipped
    assert skipped.endswith("1 result from 1 row: all as expected\n")
    unbuilt = Matrix([passed], {}, {"host/other 1.0": "it failed\nerror: line 3"}).text()
    assert "'host/other 1.0' did not run: it failed\nerror: line 3" in unbuilt
    assert unbuilt.endswith("1 result from 1 row as expected; 1 row did not run\n")
    assert Matrix([]).text() == "nothing was executed: no verdict\n"


def test_a_skip_is_told_without_what_would_recolour_the_terminal() -> None:
    assert "\x1b" not in Matrix([], {"a": "\x1b[31mred"}, {"b": "\x1b[31mred"}).text()
