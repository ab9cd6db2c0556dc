"""What a program says of itself by how it ended."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Final

from quiesce.amounts import counted
from quiesce.reporting.handed_over import Session

NAMES_MAX: Final = 5
"""So many tests that failed by themselves are named; pytest named all of them."""
_PYTEST: Final = frozenset({"pytest", "py.test"})
_TESTS_FAILED: Final = 1
_NO_TESTS_COLLECTED: Final = 5
"""``pytest.ExitCode``."""
_SHELLS: Final = 128
_CRASHES: Final = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP}
)
"""Signals that a program brings about itself, rather than somebody outside."""


def end_of(status: int, words: Sequence[str], sessions: Sequence[Session] = ()) -> str:
    """Return what a program says by its exit status, or the signal that ended it; empty where all is well.

    What such a program did may break no rule for having been cut short: that is no verdict on its memory. ``sessions``
    are the runs of pytest in it. Where all their failures are what quiesce found, the status says nothing beyond that.
    """
    if not status:
        return ""
    own = _own_failures(sessions)
    uncollected = _uncollected(sessions)
    if status == _TESTS_FAILED and _is_of_tests(sessions):
        return "; ".join(filter(None, (uncollected, own)))
    if status < 0:
        said = f"the program ended with {signal.Signals(-status).name}"
    else:
        has_no_test = status == _NO_TESTS_COLLECTED and (_is_pytest(words) or bool(sessions))
        said = f"the program ended with status {status}" + ": pytest ran no test" * has_no_test
    return "; ".join(filter(None, (said + f": {uncollected}" * bool(uncollected), own)))


def crash_of(status: int) -> str:
    """Return the signal by which a program crashed, empty where it did not; a shell's status has that of its child."""
    number = -status if status < 0 else status - _SHELLS
    return signal.Signals(number).name if number in _CRASHES else ""


def _is_of_tests(sessions: Iterable[Session]) -> bool:
    """Say whether failures of tests that are all known make up for a program's status 1."""
    kept = list(sessions)
    ends = {session.ended for session in kept}
    are_known = all(session.is_explained for session in kept)
    return are_known and _TESTS_FAILED in ends and ends <= {0, _TESTS_FAILED, _NO_TESTS_COLLECTED}


def _own_failures(sessions: Iterable[Session]) -> str:
    names = [name for session in sessions for name in session.own]
    if not names:
        return ""
    return f"{counted(len(names), 'test')} failed in the program itself: {_listed(names)}"


def _uncollected(sessions: Iterable[Session]) -> str:
    names = [name for session in sessions for name in session.uncollected]
    return f"pytest could not collect {_listed(names)}" if names else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{', '.join(names[:NAMES_MAX])}{more}"


def _is_pytest(words: Sequence[str]) -> bool:
    """Say whether a command runs pytest, by itself or as a module of an interpreter."""
    before = zip(("", *words), words, strict=False)
    return any(PurePath(word).name in _PYTEST and (word == words[0] or last == "-m") for last, word in before)
