"""Hands what the plugin finds to the ``quiesce exec`` that runs pytest. Registered only there.

pytest's exit status tells exec that a test failed, and not whether it leaked. Under pytest-xdist the process that the
workers report to hands it over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from quiesce.model.results import LEAK_CHECK
from quiesce.pytest_plugin.keys import DEVICE_ATTRIBUTE, RESULT_ATTRIBUTE
from quiesce.reporting import HANDING_VARIABLE, Handing


class HandingOver:
    """The hooks. ``folder`` is that of exec's run."""

    def __init__(self, folder: Path) -> None:
        self._handing = Handing(folder)
        self._folder = str(folder)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Generator[None]:
        """Have runs of pytest that a test starts hand over nothing."""
        os.environ[HANDING_VARIABLE] = self._folder
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hand over the results that a report carries, and whether the test failed by itself."""
        texts = [getattr(report, name, None) for name in (RESULT_ATTRIBUTE, DEVICE_ATTRIBUTE)]
        records = [_with_attempt(json.loads(text), report) for text in texts if text is not None]
        for record in records:
            self._handing.result(record)
        if report.failed:
            self._handing.failure(report.nodeid, is_result=any(map(_says_why, records)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._handing.uncollected(report.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Say how the run ended, after all that may still change it."""
        try:
            return (yield)
        finally:
            os.environ.pop(HANDING_VARIABLE, None)
            self._handing.end(int(session.exitstatus), session.testsfailed)


def _with_attempt(record: dict[str, Any], report: pytest.TestReport) -> dict[str, Any]:
    rerun = getattr(report, "rerun", 0)  # pytest-rerunfailures counts its repetitions there
    return {**record, "attempt": rerun + 1} if rerun else record


def _says_why(record: dict[str, Any]) -> bool:
    """Whether a test failed for what quiesce found, or for what it could not test."""
    return bool(record["findings"]) or record["backend"] != LEAK_CHECK


def hand_over(config: pytest.Config, settings: str) -> None:
    """Hand over what this run finds. ``settings`` are those of the simulated device, which name the run's folder."""
    folder = Path(dict(word.split("=", 1) for word in settings.split(";") if word)["folder"])
    if HANDING_VARIABLE not in os.environ and folder.is_dir():  # it is gone where exec has ended before
        config.pluginmanager.register(HandingOver(folder), "quiesce-handing-over")
