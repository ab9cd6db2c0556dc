"""What a program says of itself by how it ended."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

_PYTEST: Final = frozenset({"pytest", "py.test"})
_NO_TESTS_COLLECTED: Final = 5
"""``pytest.ExitCode.NO_TESTS_COLLECTED``."""


def end_of(status: int, words: Sequence[str]) -> str:
    """Return what a program says by its exit status, or the signal that ended it; empty where all is well.

    What such a program did may break no rule for having been cut short: that is no verdict on its memory.
    """
    if not status:
        return ""
    if status < 0:
        return f"the program ended with {signal.Signals(-status).name}"
    meaning = ": pytest ran no test" if status == _NO_TESTS_COLLECTED and _is_pytest(words) else ""
    return f"the program ended with status {status}{meaning}"


def _is_pytest(words: Sequence[str]) -> bool:
    """Say whether a command runs pytest, by itself or as a module of an interpreter."""
    before = zip(("", *words), words, strict=False)
    return any(PurePath(word).name in _PYTEST and (word == words[0] or last == "-m") for last, word in before)
