"""Numbers, files and commands as texts show them: people read the first two and copy the third.

Numbers are whole, with units, and with plurals that agree. Files are relative to the working directory, which is the
program's where a command runs one. Words of a command are quoted so that a POSIX shell reads back what was meant,
whatever a name holds. What is shown is cleaned of what a terminal cannot show; a command is not, so it may hold nothing
of the kind.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_SIZE: Final = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?(?:B|bytes?|([KMGTPE])iB)?", re.ASCII)
_DECIMAL: Final = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([KMGTPE])i?B?", re.ASCII | re.IGNORECASE)


def counted(count: int, thing: str) -> str:
    """Return ``1 block`` or ``2,000 blocks``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def bytes_in_words(size_bytes: int) -> str:
    """Return ``512 bytes``, ``1,048,576 bytes (1 MiB)`` or ``1,500,000 bytes (1.4 MiB)``."""
    exact = counted(size_bytes, "byte")
    if abs(size_bytes) < 1024:
        return exact
    power = min((abs(size_bytes).bit_length() - 1) // 10, len(_UNITS))
    whole, rest = divmod(size_bytes, 1 << 10 * power)
    amount = f"{whole:,}" if not rest else f"{size_bytes / (1 << 10 * power):,.1f}"
    return f"{exact} ({amount} {_UNITS[power - 1]})"


def exact_size(size_bytes: int) -> str:
    """Return a size without loss in the largest unit that it is whole in, as :func:`bytes_from` reads it: ``3 MiB``."""
    power = next((power for power in range(len(_UNITS), 0, -1) if size_bytes and not size_bytes % (1 << 10 * power)), 0)
    return f"{size_bytes >> 10 * power} {_UNITS[power - 1] if power else 'B'}"


def bytes_from(text: str) -> int:
    """Return the size that a text such as ``512``, ``2 KiB`` or ``1.5GiB`` states, in bytes.

    Raises :class:`ValueError`, which says what to write. So it does for ``24 MB``, which has two meanings.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        meant = _DECIMAL.fullmatch(text)
        instead = (
            f"{meant[1]} {meant[2].upper()}iB" if meant else "a number with B, KiB, MiB, GiB or TiB, such as 24 MiB"
        )
        raise ValueError(f"write {instead}")
    power = 0 if match[2] is None else 10 * ("KMGTPE".index(match[2]) + 1)
    whole, _, rest = match[1].partition(".")
    return (int(whole + rest) << power) // int("1" + "0" * len(rest))


def singular(unit: str) -> str:
    """Return ``process`` for ``processes``, and ``thread`` for ``threads``."""
    return unit.removesuffix("es" if unit.endswith("sses") else "s")


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
