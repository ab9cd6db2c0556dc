"""Leaks as SARIF 2.1.0, which code scanning of GitHub, GitLab, Azure DevOps and editors read.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0" (docs.oasis-open.org/sarif).
A result is a finding of a leak check. Its fingerprint has no line and no amount, so that a leak stays the same one when
code above it changes. Equal results give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any, Final

from quiesce.files import write_atomically
from quiesce.model.findings import Finding
from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.glossary import sentence_of
from quiesce.reporting.json_values import encodable
from quiesce.reporting.leak_checks import accused_first, leak_in_short, place_of
from quiesce.reporting.text import clean_line

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {Verdict.FAILED: "error", Verdict.KNOWN_UPSTREAM: "note"}


def has_leak_checks(report: Report) -> bool:
    """Whether a report has anything to say here."""
    return any(result.is_leak_check for result in report.results)


def render_sarif(report: Report) -> str:
    """Return the findings of leak checks, the largest leak first."""
    found = [
        (result, finding)
        for result in accused_first(each for each in report.results if each.is_leak_check)
        if result.verdict in _LEVELS
        for finding in result.findings
    ]
    rules = sorted({finding.rule for _, finding in found})
    driver: dict[str, Any] = {"name": "quiesce", "rules": list(map(_rule, rules))}
    if version := report.run.get("version of quiesce", ""):
        driver["version"] = encodable(version)
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, finding, rules.index(finding.rule)) for result, finding in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, sort_keys=True) + "\n"


def _rule(name: str) -> dict[str, Any]:
    sentence = sentence_of(name)
    return {"id": encodable(name), **({"shortDescription": {"text": sentence}} if sentence else {})}


def _result(result: Result, finding: Finding, rule_index: int) -> dict[str, Any]:
    case = clean_line(result.case)
    place = place_of(result, finding)
    test = (clean_line(result.path), finding.line or 0)
    record: dict[str, Any] = {
        "ruleId": encodable(finding.rule),
        "ruleIndex": rule_index,
        "level": _LEVELS[result.verdict],
        "message": {"text": encodable(f"{case} {_said(finding)}")},
        "locations": [_location(*place)],
        "partialFingerprints": {"leak/v1": _fingerprint(case, finding, place[0])},
        "properties": {"test": encodable(case)},
    }
    if place != test:
        record["relatedLocations"] = [{**_location(*test), "message": {"text": "the test"}}]
    if result.verdict is Verdict.KNOWN_UPSTREAM:
        reason = encodable(clean_line(result.reason))
        record["suppressions"] = [{"kind": "external", "justification": reason}]
    return record


def _said(finding: Finding) -> str:
    return leak_in_short([finding]) if finding.readings is not None else clean_line(finding.observed)


def _location(path: str, line: int) -> dict[str, Any]:
    pure = PurePath(path)
    uri = pure.as_uri() if pure.is_absolute() else _relative_uri(pure)
    region = {"region": {"startLine": line}} if line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, **region}}


def _relative_uri(path: PurePath) -> str:
    from urllib.parse import quote

    return quote(encodable(path.as_posix()))


def _fingerprint(case: str, finding: Finding, path: str) -> str:
    gauge = "" if finding.readings is None else finding.readings.gauge
    words: Iterable[str] = (case, finding.rule, gauge, path)
    return hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:32]


def write_sarif(report: Report, path: Path) -> None:
    """Write the report to ``path`` atomically. Raises :class:`OSError`."""
    write_atomically(path, render_sarif(report))
