"""Commands that fetch and build, run without a shell, with all that they write kept in a log.

Their words may hold names in braces: ``{build}/driver``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from quiesce.model import wording
from quiesce.model.errors import ConfigurationError, SubjectNotBuilt

_SHOWN_LINES: Final = 16


def perform(command: Sequence[str], log: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command in ``folder`` and append what it writes to ``log``.

    Raises :class:`SubjectNotBuilt` where it cannot be started or fails.
    """
    text = wording.join(command)
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


Places = Mapping[str, str]
"""What stands for each word, such as ``source`` or ``version``."""

_BRACES: Final = re.compile(r"\{([a-z]+)\}")


def replace_words(texts: Sequence[str], places: Places) -> list[str]:
    """Return the texts with what their words stand for. Raises :class:`ConfigurationError` for an unknown one."""
    return [_BRACES.sub(lambda match: _place(match[1], places), text) for text in texts]


def replace_in_values(named: Mapping[str, str], places: Places) -> dict[str, str]:
    """Return a table with what the words of its values stand for; raises as :func:`replace_words` does."""
    return dict(zip(named, replace_words(list(named.values()), places), strict=True))


def _place(word: str, places: Places) -> str:
    if word not in places:
        known = ", ".join(f"{{{name}}}" for name in sorted(places))
        raise ConfigurationError(f"nothing stands for {{{word}}} here; write one of {known}")
    return places[word]
