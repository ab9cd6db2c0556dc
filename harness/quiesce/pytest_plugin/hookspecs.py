"""The hooks that a conftest or a plugin can implement to set policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from quiesce.model.backend import Backend
    from quiesce.model.results import Report, Result


@pytest.hookspec(firstresult=True)
def pytest_quiesce_backend(name: str, backend: Backend) -> Backend | None:
    """See each chosen backend before it runs anything; return another to use in its place, or None."""


@pytest.hookspec(firstresult=True)
def pytest_quiesce_adjust_result(result: Result) -> Result | None:
    """See each case's result before it is judged; return another to report in its place, or None."""


@pytest.hookspec
def pytest_quiesce_report(report: Report) -> None:
    """See the finished report of the run, once, where pytest was started (under xdist: not in its workers)."""
