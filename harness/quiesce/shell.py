"""Commands to copy: words quoted so that a POSIX shell reads back what was meant, whatever a name holds.

What is shown is cleaned of what a terminal cannot show; a command is not, so it may hold nothing of the kind.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from typing import Final

EXEC_VARIABLE: Final = "QUIESCE_EXEC"
"""What ``quiesce exec`` sets for its program: its own command up to there, with the options that matter."""


def join(words: Iterable[str]) -> str:
    """Return a command line, in printable characters only."""
    return " ".join(map(quote, words))


def quote(word: str) -> str:
    """Return one word, with ``$'...'`` (POSIX of 2024, bash, zsh) where it holds what cannot be printed."""
    return shlex.quote(word) if word.isprintable() else "$'" + "".join(map(_escape, word)) + "'"


def operand(path: str) -> str:
    """Return a path as a word that no program takes for an option."""
    return f"./{path}" if path.startswith("-") else path


def pytest_command(nodeid: str) -> str:
    """Return the command that runs one test again, under ``quiesce exec`` where that runs this process.

    The test's name is quoted in any case.
    """
    word = operand(nodeid)
    quoted = quote(word)
    under = os.environ.get(EXEC_VARIABLE)
    return f"{under} " * bool(under) + "pytest " + (quoted if quoted != word else f"'{word}'")


def _escape(character: str) -> str:
    if character in "'\\":
        return f"\\{character}"
    if character.isprintable():
        return character
    # A byte of a name that is not UTF-8 is a surrogate; any other surrogate stands for itself.
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", errors))  # \x would take digits behind it
