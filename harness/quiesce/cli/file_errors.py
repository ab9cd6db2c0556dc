"""What is said of a file or folder that the system refuses."""

from __future__ import annotations

import os


def explain(error: OSError) -> str:
    """Return which file it is, where that is known, and why, for one line."""
    why = error.strerror or str(error) or type(error).__name__
    return why if error.filename is None else f"'{os.fsdecode(error.filename)}': {why}"
