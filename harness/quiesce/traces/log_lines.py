"""The lines of a log that may hold anything: of any encoding that a shell writes, of any length, without an end."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LINE_CHARACTERS_MAX: Final = 1 << 14
"""What is longer comes in pieces: no line of a leak report is."""

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
"""Byte order marks. PowerShell 5 writes UTF-16 where output is redirected."""


def log_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line, without its end; what can't be decoded is replaced.

    Raises :class:`OSError`.
    """
    with Path(path).open("rb") as raw:
        head = raw.read(4)
        raw.seek(0)
        encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
        stream = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline=None)
        number = 1
        while piece := stream.readline(LINE_CHARACTERS_MAX):
            yield number, piece.rstrip("\n")
            number += piece.endswith("\n")
