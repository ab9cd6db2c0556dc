"""A pytest plugin for a suite's own process: it runs every N-th test, and writes down each outcome as it comes.

Settings are variables: ``CHOSEN_TESTS`` is ``FIRST:STEP``, and ``OUTCOMES`` is the file for outcomes, a line of JSON
each. With ``QUICK_TESTS``, tests that the suite itself marks as slow are left out. A test that was begun before is not
run again, so that a run that was interrupted goes on.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_TEXT_MAX = 20_000


def _write(**values: object) -> None:
    with Path(os.environ["OUTCOMES"]).open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(values) + "\n")


def _begun() -> set[str]:
    path = Path(os.environ["OUTCOMES"])
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {json.loads(line).get("begun", "") for line in lines}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the tests that were asked for, and that were not begun before."""
    first, step = map(int, os.environ["CHOSEN_TESTS"].split(":"))
    begun = _begun()
    _write(collected=len(items))
    chosen = [item for item in items[first::step] if item.nodeid not in begun]
    quick = bool(os.environ.get("QUICK_TESTS"))
    items[:] = [item for item in chosen if not (quick and item.get_closest_marker("slow"))]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid: str) -> None:
    """Note that a test begins, in case that the process does not survive it."""
    _write(begun=nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that can't be imported as a test that failed."""
    if report.failed:
        _write(name=report.nodeid, outcome="failed", text=str(report.longrepr)[-_TEXT_MAX:])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the outcome of a test; its setup and its end have one if they are not as they should be."""
    if report.when == "call" or report.outcome != "passed":
        _write(name=report.nodeid, outcome=report.outcome, text=str(report.longrepr)[-_TEXT_MAX:])


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request: pytest.FixtureRequest) -> None:
    """Set up numba-cuda's test cases, which the ``conftest.py`` of its repository does; its wheel has none."""
    request.cls._dump_failed_filechecks = False


def pytest_sessionfinish() -> None:
    """Note that no test is left."""
    _write(finished=True)
