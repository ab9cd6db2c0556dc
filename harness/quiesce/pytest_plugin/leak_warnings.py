"""The warning about a leak check that came to no verdict."""

from __future__ import annotations

import warnings

import pytest


class LeakCheckWarning(pytest.PytestWarning):
    """A test could not be checked for leaks."""


def warn_of(item: pytest.Item, reason: str) -> None:
    """Warn that a test has no verdict. A filter that makes errors of warnings doesn't make the test fail."""
    warning = LeakCheckWarning(f"no leak verdict: {reason}")
    try:
        item.warn(warning)
    except LeakCheckWarning:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LeakCheckWarning)
            item.warn(warning)
