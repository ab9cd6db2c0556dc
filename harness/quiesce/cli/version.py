"""The version of quiesce that is installed."""

from __future__ import annotations

import importlib.metadata


def version() -> str:
    """Return the installed distribution's version, or ``(not installed)`` for a bare source tree."""
    try:
        return importlib.metadata.version("quiesce")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
