"""SARIF 2.1.0: what its schema requires of what is written, and what a reader gets of a leak."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from quiesce.model.results import Report, Verdict
from quiesce.reporting.sarif import has_leak_checks, render_sarif

from .test_github import LEAKS, checked

# The properties that the schema of SARIF 2.1.0 requires (its definitions run, tool, toolComponent, result, message,
# reportingDescriptor, suppression), with the values that it allows for those that are written.
URI: Final = {"type": "string", "pattern": "^[^ <>\\\\]*$"}
MESSAGE: Final = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
PLACES: Final[dict[str, Any]] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "message": MESSAGE,
            "physicalLocation": {
                "type": "object",
                "required": ["artifactLocation"],
                "properties": {
                    "artifactLocation": {"type": "object", "properties": {"uri": URI}},
                    "region": {"type": "object", "properties": {"startLine": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    },
}
REQUIRED: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "$schema": {"type": "string"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {"shortDescription": MESSAGE},
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "properties": {
                                "message": MESSAGE,
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "locations": PLACES,
                                "relatedLocations": PLACES,
                                "partialFingerprints": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                },
                                "suppressions": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["kind"],
                                        "properties": {"kind": {"enum": ["inSource", "external"]}},
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def rendered(*results: Any) -> dict[str, Any]:
    jsonschema = pytest.importorskip("jsonschema")
    report = Report(seed=0, results=results, run={"version of quiesce": "1.2"})
    document: dict[str, Any] = json.loads(render_sarif(report))
    jsonschema.validate(document, REQUIRED)
    (run,) = document["runs"]
    assert run["tool"]["driver"]["version"] == "1.2"
    return dict(run)


def test_a_leak_is_a_result_at_its_line() -> None:
    line = replace(LEAKS, line=7)
    run = rendered(checked("test_a", Verdict.FAILED, line), checked("test_clean", Verdict.PASSED))
    (result,) = run["results"]
    assert result["message"]["text"].startswith(
        "tests/test_it.py::test_a leaks 8,112 B/round (Python) at src/a,b.py:14"
    )
    (place,) = result["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "src/a%2Cb.py"}, "region": {"startLine": 14}}
    (test,) = result["relatedLocations"]
    assert test["physicalLocation"]["region"] == {"startLine": 7}
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "rule"


def test_a_known_leak_is_suppressed_with_its_reason() -> None:
    (result,) = rendered(checked("test_a", Verdict.KNOWN_UPSTREAM, LEAKS, reason="issue 7"))["results"]
    assert result["level"] == "note"
    assert result["suppressions"] == [{"kind": "external", "justification": "issue 7"}]


def test_a_leak_is_the_same_one_when_lines_move() -> None:
    moved = replace(LEAKS, allocated_by="src/a,b.py:15: KEPT.append(1)", line=9)
    prints = [
        rendered(checked("test_a", Verdict.FAILED, found))["results"][0]["partialFingerprints"]
        for found in (LEAKS, moved)
    ]
    assert prints[0] == prints[1]


def test_the_largest_leak_is_first() -> None:
    assert LEAKS.readings is not None
    small = replace(LEAKS, readings=replace(LEAKS.readings, per_round=1.0))
    run = rendered(checked("test_a", Verdict.FAILED, small), checked("test_b", Verdict.FAILED, LEAKS))
    assert [result["properties"]["test"][-1] for result in run["results"]] == ["b", "a"]


def test_only_leak_checks_make_a_file() -> None:
    check = checked("test_a", Verdict.PASSED)
    assert has_leak_checks(Report(0, (check,)))
    assert not has_leak_checks(Report(0, (replace(check, backend="host"),)))
