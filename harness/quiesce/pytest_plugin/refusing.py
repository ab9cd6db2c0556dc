"""Ending a run before any test, for what was collected makes no sense."""

from __future__ import annotations

from typing import NoReturn

import pytest


def refuse(session: pytest.Session, text: str) -> NoReturn:
    """End the run with one line.

    A worker of pytest-xdist has told its tests by now and would be taken for one that died: it says why it ends.
    """
    if hasattr(session.config, "workerinput"):
        session.shouldfail = text
    raise pytest.UsageError(text)
