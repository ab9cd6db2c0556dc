"""Results on pytest's reports: as a value for whoever writes reports, and as properties for JUnit."""

from __future__ import annotations

import json

import pytest

from quiesce.model.results import Result
from quiesce.pytest_plugin.keys import BACKEND_PROPERTY, RESULT_ATTRIBUTE
from quiesce.reporting import clean_line, result_record


def as_text(result: Result) -> str:
    """Return a result as JSON, as reports and workers send it."""
    return json.dumps(result_record(result))


def attach(result: Result, report: pytest.TestReport) -> None:
    """Put a result on a report."""
    setattr(report, RESULT_ATTRIBUTE, as_text(result))
    properties = {
        "quiesce_verdict": str(result.verdict),
        BACKEND_PROPERTY: result.backend,
        "quiesce_upstream": "; ".join(result.upstream),
        "quiesce_rules": ", ".join(dict.fromkeys(finding.rule for finding in result.findings)),
    }
    others = [each for each in report.user_properties if each[0] not in properties]  # a rerun leaves its own
    report.user_properties = others + [(name, clean_line(value)) for name, value in properties.items() if value]
