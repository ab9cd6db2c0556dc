"""The failed result of what a process was running when it died."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from quiesce.allocators.cases.parser import identify
from quiesce.model import wording
from quiesce.model.errors import CaseError
from quiesce.model.findings import Finding
from quiesce.model.results import LEAK_CHECK, Result, Verdict
from quiesce.model.rules import Kind
from quiesce.pytest_plugin.case_items import failed_result, read_case, reproduce

SURVIVES: Final = "process_survives_every_request"
"""The rule that is broken where the process that runs a case or a test dies."""


def crashed_case(nodeid: str, observed: str, config: pytest.Config) -> Result:
    """Return the result of a case item whose worker process died while it ran."""
    name, _, backend = nodeid.partition("::")
    path = config.rootpath / name
    finding = Finding(SURVIVES, "the process lives until the case has run", observed, kind=Kind.CRASH)
    try:
        result = failed_result(read_case(path, name), backend, "")
    except CaseError:
        result = Result(identify(path), "", name, backend, Verdict.FAILED, reproduce=reproduce(name, backend))
    return replace(result, findings=(finding,))


def crashed_test(nodeid: str, name: str, line: int | None, observed: str) -> Result:
    """Return the result of a test that was being checked for leaks when its worker process died.

    ``line`` counts from 0, as pytest does.
    """
    expected = "the process lives until every round of the test has run"
    at = None if line is None else line + 1
    return Result(
        case=nodeid,
        title=f"{name} is checked for leaks",
        path=nodeid.partition("::")[0],
        backend=LEAK_CHECK,
        verdict=Verdict.FAILED,
        findings=(Finding(SURVIVES, expected, observed, line=at, kind=Kind.CRASH),),
        reproduce=wording.pytest_command(nodeid),
    )
