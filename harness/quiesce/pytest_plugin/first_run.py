"""The first run of a test: the one that is reported, though the check repeats the test before pytest reports it.

The first run is an ordinary one. Its reports are kept while the rounds go on. Then pytest sets the test up, calls it
and tears it down as always, but the test does nothing more than to raise what its first run raised, and the reports are
those of the first run. So a test that can't run twice still ends as it would without a check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

_PHASES: Final = {"setup": "setup", "call": "runtest", "teardown": "teardown"}
"""The method of an item that pytest calls in each phase."""


class FirstRun:
    """Keeps what each phase of the first run came to."""

    def __init__(self, item: pytest.Item) -> None:
        self._item: Any = item
        self._reports: dict[str, pytest.TestReport] = {}
        self._errors: dict[str, BaseException | None] = {}

    def keep(self, report: pytest.TestReport, error: BaseException | None) -> None:
        """Keep the report of a phase and the error that ended it."""
        self._reports[report.when] = report
        self._errors[report.when] = error

    @property
    def is_over(self) -> bool:
        """Whether the run came to its end."""
        return "teardown" in self._reports

    def stand_in(self) -> None:
        """Have the test repeat from now on what its first run raised, and nothing else."""
        for when, method in _PHASES.items():
            setattr(self._item, method, self._telling(when))

    def step_back(self) -> None:
        """Have the test run again; idempotent."""
        for method in _PHASES.values():
            vars(self._item).pop(method, None)

    def _telling(self, when: str) -> Callable[[], None]:
        def tell() -> None:
            error = self._errors.get(when)
            if error is not None:
                raise error

        return tell

    def report(self, report: pytest.TestReport, error: BaseException | None) -> pytest.TestReport:
        """Return the first run's report in place of one about the same; else give that one the first run's output."""
        first = self._reports.get(report.when)
        if first is None:
            return report
        first.user_properties += [each for each in report.user_properties if each not in first.user_properties]
        if error is self._errors.get(report.when):
            return first
        report.sections[:0] = first.sections
        report.duration, report.start, report.stop = first.duration, first.start, first.stop
        return report
