"""Commands to copy: words quoted so that a POSIX shell reads back what was meant, whatever a name holds.

What is shown is cleaned of what a terminal cannot show; a command is not, so it may hold nothing of the kind.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

EXEC_VARIABLE: Final = "QUIESCE_EXEC"
"""What ``quiesce exec`` sets for its program: its own command up to there, with the options that matter."""
REDACTED: Final = "***"
_SENSITIVE: Final = r"(?:pass(?:word|wd|phrase)|secret|token|credentials?|(?:api|access|auth|private)[-_]?key|auth)"
_OPTION: Final = rf"--?(?:\w+[-_])*{_SENSITIVE}"
_SENSITIVE_OPTION: Final = re.compile(_OPTION, re.IGNORECASE)
_VARIABLE: Final = rf"(?:[A-Z0-9]+_)*{_SENSITIVE.upper().replace('[-_]?', '_?')}"
_SENSITIVE_VARIABLE: Final = re.compile(_VARIABLE)
_VALUE: Final = r"""(?:'[^']*'|"[^"]*"|[^\s'"]+)"""
# An option with its value, a variable of the environment, and the password of an address.
_SECRETS: Final = re.compile(
    rf"(?P<quoted>'(?:(?i:{_OPTION})|{_VARIABLE})=)[^']*(?=')"
    rf"|(?P<option>(?<![\w-])(?i:{_OPTION})(?:=|\s+(?!-))){_VALUE}"
    rf"|(?P<variable>\b{_VARIABLE}=){_VALUE}"
    r"|(?P<scheme>\w://[^\s/:@]*:)[^\s/@]+(?=@)"
)


def join(words: Iterable[str]) -> str:
    """Return a command line, in printable characters only and without secrets."""
    return " ".join(map(quote, _without_secrets(words)))


def redacted(text: str) -> str:
    """Return ``text`` with :data:`REDACTED` in place of the values of options and variables that are named as secrets.

    Those are ``--password=VALUE``, ``--api-key VALUE``, ``HF_TOKEN=VALUE``, ``https://user:VALUE@host`` and the like.
    """
    return _SECRETS.sub(lambda found: f"{found[found.lastgroup or 0]}{REDACTED}", text)


def _without_secrets(words: Iterable[str]) -> Iterator[str]:
    is_value = False
    for word in words:
        name, equals, _ = word.partition("=")
        if is_value and not word.startswith("-"):
            yield REDACTED
        elif equals and (_SENSITIVE_OPTION.fullmatch(name) or _SENSITIVE_VARIABLE.fullmatch(name)):
            yield f"{name}={REDACTED}"
        else:
            yield redacted(word)
        is_value = bool(_SENSITIVE_OPTION.fullmatch(word))


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
