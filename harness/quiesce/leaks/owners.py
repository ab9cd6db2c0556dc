"""Whose memory it is: the code under test's, or that of what runs the tests.

What runs the tests keeps things too: reports, statistics, examples. That is no leak of the code under test, and the
only thing that tells them apart is who asked for the memory.
"""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from quiesce.leaks.system_calls import SystemCalls

Frame: TypeAlias = tuple[str, int]
"""File and line."""

TESTED: Final = "tested"
DEPENDENCY: Final = "dependency"
RUNNER: Final = "runner"
LIBRARY: Final = "library"

TYPED: Final = ("<doctest ", "<stdin>", "<console>", "<python-input-", "<ipython-input-")
"""How the file name begins of code that a person wrote without a file. Other names in angle brackets are of code that
was made at run time, as for a named tuple or a data class: it does what its caller asks, like the standard library."""


class Owners:
    """Decides by file names. ``runner`` has the folders and files of what runs the tests."""

    def __init__(self, runner: Iterable[str]) -> None:
        self._runner = tuple(_normal(name) for name in runner)
        paths = sysconfig.get_paths()
        self._site = tuple(_normal(paths[key]) for key in ("purelib", "platlib"))
        self._library = tuple(_normal(paths[key]) for key in ("stdlib", "platstdlib"))
        self._kinds: dict[str, str] = {}

    def owner(self, frames: Sequence[Frame]) -> Frame | None:
        """Return the frame of the code under test that asked for memory, or None if what runs the tests did.

        ``frames`` begins with the innermost. What counts is the first frame outside the standard library and code made
        at run time, which only do what they are asked. Where there is none the code under test is assumed, for a trace
        is only so deep. Of an installed package the caller outside of it is returned, where the trace reaches that far.
        """
        installed = None
        for frame in frames:
            kind = self._kinds.get(frame[0]) or self.kind(frame[0])
            if kind == TESTED:
                return frame
            if kind == RUNNER:
                return installed
            if kind == DEPENDENCY and installed is None:
                installed = frame
        return installed or frames[0]

    def is_tested(self, filename: str) -> bool:
        """Whether a file belongs to the code under test."""
        return self.kind(filename) == TESTED

    def kind(self, filename: str) -> str:
        """Return whose code a file holds."""
        if filename not in self._kinds:
            self._kinds[filename] = self._find_kind(filename)
        return self._kinds[filename]

    def _find_kind(self, filename: str) -> str:
        if filename.startswith("<") and filename.endswith(">"):
            return TESTED if filename.startswith(TYPED) else LIBRARY
        path = _normal(filename)
        if _below(path, self._runner):
            return RUNNER
        if _below(path, self._site):
            return DEPENDENCY
        return LIBRARY if _below(path, self._library) else TESTED


def frame_text(frame: Frame) -> str:
    """Return ``file:line: the source line``."""
    filename, line = frame
    source = linecache.getline(filename, line).strip()
    return f"{filename}:{line}: {source}" if source else f"{filename}:{line}"


def _normal(name: str) -> str:
    return os.path.normcase(SystemCalls.real_path(name))


def _below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(place + os.sep) for place in places)
