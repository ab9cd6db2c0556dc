"""Files as texts name them: relative to the working directory, which is the program's where a command runs one."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import Final

_SLASHES: Final = re.compile(r"^//+(?=[^/])")
"""Python names a script so that was started from ``/``: ``//srv/train.py``."""


def shown_path(file: str, folder: str | None = None) -> str:
    """Return a file relative to a folder where it lies below it, else as it is; None is the working directory."""
    path = _SLASHES.sub("/", file)
    if not PurePath(path).is_absolute():
        return path
    try:
        base = PurePath(folder) if folder is not None else Path.cwd()
    except OSError:  # it was removed
        return path
    if base == PurePath(base.anchor) or not PurePath(path).is_relative_to(base):
        return path
    return PurePath(path).relative_to(base).as_posix()
