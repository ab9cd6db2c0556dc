"""Ending a run before any test, for what was collected makes no sense."""

from __future__ import annotations

from typing import NoReturn

import pytest

from quiesce.pytest_plugin.keys import REFUSED


def refuse(session: pytest.Session, text: str) -> NoReturn:
    """End the run with one line.

    A worker of pytest-xdist has told its tests by now and would be taken for one that died: it says why it ends, and
    the run ends with that line where pytest was started.
    """
    if hasattr(session.config, "workeroutput"):
        session.shouldfail = text
        session.config.workeroutput[REFUSED] = text
    raise pytest.UsageError(text)
