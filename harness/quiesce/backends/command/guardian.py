"""A process that ends the driver programs of a process that was ended by force, and could not do it itself.

A driver program that hangs does not see that its input ended. Linux could end it with its parent
(``PR_SET_PDEATHSIG``), but not what it started, and only where each start copies this process. So one shell is told of
every process group.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from io import FileIO
from typing import Final, cast

_SCRIPT: Final = """
trap '' INT TERM HUP
left=
while read -r what group; do
    kept=
    for each in $left; do [ "$each" = "$group" ] || kept="$kept $each"; done
    left=$kept
    [ "$what" = + ] && left="$left $group"
done
for each in $left; do kill -9 "-$each"; done
"""


class Guardian:
    """The shell, which starts with the first driver program. A forked child of ours has one of its own."""

    def __init__(self) -> None:
        self._owner = 0
        self._input: FileIO | None = None

    def watch(self, group: int) -> None:
        """End the process group when this process is gone."""
        if sys.platform == "win32":
            return
        if self._owner != os.getpid():
            self._start()
        self._tell(f"+ {group}\n")

    def forget(self, group: int) -> None:
        """Let the process group be: it was ended, and its number may be that of another."""
        if self._owner == os.getpid():
            self._tell(f"- {group}\n")

    def _start(self) -> None:
        self._owner, self._input = os.getpid(), None
        with suppress(OSError):  # no shell: then this is a system without the last resort
            process = subprocess.Popen(  # noqa: S603 - a list, and a text of ours
                ["/bin/sh", "-c", _SCRIPT],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
            self._input = cast(FileIO, process.stdin)
            atexit.register(_end, process, os.getpid())

    def _tell(self, line: str) -> None:
        if self._input is not None and not self._input.closed:
            with suppress(OSError):
                self._input.write(line.encode())


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner and process.stdin is not None:
        process.stdin.close()
        process.wait()


GUARDIAN: Final = Guardian()
"""The one of this process."""
