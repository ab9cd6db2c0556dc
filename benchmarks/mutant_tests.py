"""A plugin of pytest for ``mutants.py``: it notes which lines each test reaches, and runs chosen tests in order."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare what ``mutants.py`` asks for."""
    group = parser.getgroup("mutants")
    group.addoption("--note-reach", help="note in this folder which lines each test reaches, and how long it takes")
    group.addoption("--chosen", help="run the tests that this file lists, in that order")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to note, if that is asked for."""
    if folder := config.getoption("--note-reach"):
        config.pluginmanager.register(_Noting(Path(folder)), "mutants-noting")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen tests, in their order."""
    if chosen := config.getoption("--chosen"):
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in json.loads(Path(chosen).read_text("utf-8")) if name in by_name]


class _Noting:
    """Gives each test a context of its own in the data of coverage.py."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self._passed: dict[str, float] = {}
        self._failed: set[str] = set()
        self._folder = folder
        self._coverage = coverage.Coverage(
            data_file=str(folder / "coverage"), config_file=False, include=["*/harness/quiesce/*"], messages=False
        )
        self._coverage.set_option("run:relative_files", True)
        self._coverage.set_option("run:core", "ctrace")  # another one knows no contexts
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "passed":
            self._passed[report.nodeid] = self._passed.get(report.nodeid, 0.0) + report.duration
        else:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        kept = {name: round(seconds, 3) for name, seconds in self._passed.items() if name not in self._failed}
        (self._folder / "seconds.json").write_text(json.dumps(kept), "utf-8")
