"""The text of a case file: read within bounds, and cut into numbered lines.

Everything that could be costly or ambiguous is refused here, before the grammar sees it: huge or special files,
other encodings and line ends, control characters, and characters that change the direction of writing.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Final

from quiesce.errors import CaseError

FILE_BYTES_MAX: Final = 1 << 20
"""The largest case file; what is larger is refused without being read."""
LINE_CHARACTERS_MAX: Final = 1000
"""The longest line, which bounds the cost of evaluating one size."""

_BYTE_ORDER_MARK = "\ufeff"
FORBIDDEN_CHARACTER: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""A character that no line may hold: it cannot be seen, ends a line elsewhere, or reorders what is shown."""


def read_source(path: Path) -> str:
    """Return the text of the case file at ``path``.

    Raises :class:`CaseError` for a file that is missing, special, above :data:`FILE_BYTES_MAX` or not UTF-8.
    """
    name = path.as_posix()
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise CaseError(name, 1, "this is not a regular file", "name a case file that ends in .case")
        if status.st_size > FILE_BYTES_MAX:
            raise _too_large(name, status.st_size)
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CaseError(
            name, 1, f"the file cannot be read ({reason})", "check that it exists and that you may read it"
        ) from error
    if len(data) > FILE_BYTES_MAX:
        raise _too_large(name, len(data))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CaseError(name, 1, "the file is UTF-16", "save it as UTF-8 without a byte order mark")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CaseError(name, line, f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8") from error


def split_lines(text: str, name: str) -> list[str]:
    """Return the lines of ``text``; the first is line 1 of the file.

    Raises :class:`CaseError`, which names the file as ``name``, for a line that no case may hold.
    """
    if len(text) > FILE_BYTES_MAX:
        raise _too_large(name, len(text))
    if text.startswith(_BYTE_ORDER_MARK):
        raise CaseError(name, 1, "the file starts with a byte order mark", "save it as UTF-8 without one")
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_CHARACTERS_MAX:
            raise CaseError(
                name, number, f"the line has {len(line)} characters", f"write at most {LINE_CHARACTERS_MAX} a line"
            )
        if found := FORBIDDEN_CHARACTER.search(line):
            raise _forbidden(name, number, line, found.start())
    return lines


def _too_large(name: str, size_bytes: int) -> CaseError:
    return CaseError(
        name,
        1,
        f"the file is too large ({size_bytes:,} bytes)",
        f"a case has at most {FILE_BYTES_MAX:,} bytes: shrink it",
    )


def _forbidden(name: str, number: int, line: str, position: int) -> CaseError:
    character = line[position]
    if character == "\r" and position == len(line) - 1:
        return CaseError(name, number, "the line ends in CRLF", "save the file with LF line ends")
    if character == "\t":
        return CaseError(name, number, "the line holds a tab", "write spaces, 4 for each level of indentation")
    if character == "\0":
        return CaseError(name, number, "the line holds a NUL byte", "write plain text")
    return CaseError(name, number, f"the line holds the invisible character U+{ord(character):04X}", "leave it out")
