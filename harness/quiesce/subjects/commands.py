"""Commands that fetch and build, run without a shell, with all that they write kept in a log."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from quiesce import shell
from quiesce.errors import SubjectNotBuilt

_SHOWN_LINES: Final = 16


def perform(command: Sequence[str], log: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command in ``folder`` and append what it writes to ``log``.

    Raises :class:`SubjectNotBuilt` where it cannot be started or fails.
    """
    text = shell.join(command)
    with log.open("ab") as file:
        file.write(f"$ {text}\n".encode(errors="backslashreplace"))
        file.flush()
        begin = file.tell()
        try:
            done = subprocess.run(  # noqa: S603 - a list, no shell
                list(command),
                check=False,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        except OSError as error:
            raise SubjectNotBuilt(text, f"{error.strerror or error}", "", log) from None
    if done.returncode:
        raise SubjectNotBuilt(text, f"status {done.returncode}", _shown_lines(log, begin), log)


def _shown_lines(log: Path, begin: int) -> str:
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode(errors="replace").splitlines()
    if len(lines) > 2 * _SHOWN_LINES:  # compilers say first what is wrong, others say it last
        lines[_SHOWN_LINES:-_SHOWN_LINES] = [f"… {len(lines) - 2 * _SHOWN_LINES} lines are in the log …"]
    return "\n".join(lines)
