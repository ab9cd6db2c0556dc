"""Ends the program of a run, and all that it started, if ``quiesce exec`` is killed and can't do it any more.

A shell waits until the pipe from ``quiesce exec`` is closed, for it costs next to nothing. If no word came before, it
becomes this module, which looks for the processes that belong to the folder of the run.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_SHELL: Final = "/bin/sh"
_WAITS: Final = 'read -r word; [ "$word" = end ] || exec "$@"'
_ROUNDS_MAX: Final = 100


@contextmanager
def guarded(folder: Path, started: Callable[[int], None]) -> Iterator[None]:
    """Have the processes of the run in ``folder`` end with this one. ``started`` gets the number of the guard."""
    words = [sys.executable, "-P", "-m", "quiesce.simulator.guard", str(folder)]
    # Its own session: what ends a terminal's processes together leaves it the time to end the others.
    guard = subprocess.Popen(  # noqa: S603 - a list
        [_SHELL, "-c", _WAITS, "guard", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    started(guard.pid)
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            guard.communicate(b"end\n")


def members(folder: Path) -> set[int]:
    """Return the processes that were started for the run in ``folder``, or have one of its libraries loaded."""
    named = re.compile(re.escape(os.fsencode(folder)) + rb"(?=[/;:\0]|$)")
    loaded = os.fsencode(folder) + b"/lib/"
    found: set[int] = set()
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and int(place.name) != os.getpid():
            with suppress(OSError):
                if named.search((place / "environ").read_bytes()) or loaded in (place / "maps").read_bytes():
                    found.add(int(place.name))
    return found


def end_members(folder: Path) -> None:
    """Kill the processes of the run in ``folder``, also those that they start meanwhile."""
    for _ in range(_ROUNDS_MAX):
        found = members(folder)
        if not found:
            return
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    end_members(Path(sys.argv[1]))
