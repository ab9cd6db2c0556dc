"""The parser: the text of a case file becomes a ``Case``, or one error that names its line.

The text is read within bounds and cut into numbered lines before anything is made of them.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quiesce.allocators.cases.body import BodyLine, parse_body
from quiesce.allocators.cases.case import Case, Repeat, Statement
from quiesce.allocators.cases.expansion import count_steps
from quiesce.allocators.cases.header import parse_header
from quiesce.allocators.cases.slots import check_slots
from quiesce.model.errors import CaseError

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


STEPS_MAX: Final = 1_000_000
"""The most requests and expectations that a case may expand to."""
CASE_SUFFIX: Final = ".case"
_ROOT_FOLDERS = frozenset({"cases", "corpus"})


def parse_case(path: Path, *, identifier: str | None = None) -> Case:
    """Return the case that the file at ``path`` holds.

    Without an ``identifier`` it is :func:`identify`'s. Raises :class:`CaseError`, and nothing else, whatever
    the file holds.
    """
    return parse_text(read_source(path), path, identifier)


def parse_text(text: str, path: Path | str, identifier: str | None = None) -> Case:
    """Return the case that ``text`` says; ``path`` is where it was read, for messages. Raises :class:`CaseError`."""
    name = path.as_posix() if isinstance(path, Path) else path
    header_lines, body_lines, comments = _divide(split_lines(text, name), name)
    header = parse_header(header_lines, name)
    if not body_lines:
        last = header_lines[-1][0]
        raise CaseError(name, last, "the case requests nothing", "write its requests below a blank line")
    body = parse_body(body_lines, name)
    _check_bounds(body, name)
    check_slots(body, name)
    return Case(
        identifier=identify(Path(path)) if identifier is None else identifier,
        path=name,
        title=header.title,
        kind=header.kind,
        upstream=header.upstream,
        fault=header.fault,
        finds=header.finds,
        needs=header.needs,
        promises=header.promises,
        device=header.device,
        known=header.known,
        body=body,
        comments=comments,
    )


def identify(path: Path) -> str:
    """Return the identifier of the case at ``path``: its path below the nearest folder ``cases`` or ``corpus``.

    Outside such a folder it is the file's folder and name (``pool/squeeze_before_oom``).
    """
    *folders, name = path.absolute().parts[1:]
    roots = [position for position, folder in enumerate(folders) if folder in _ROOT_FOLDERS]
    below = folders[roots[-1] + 1 :] if roots else folders[-1:]
    return "/".join((*below, name.removesuffix(CASE_SUFFIX)))


_Numbered = tuple[int, str]


def _divide(lines: Sequence[str], name: str) -> tuple[list[_Numbered], list[BodyLine], tuple[_Numbered, ...]]:
    """Tell header, body and comments apart. A ``#`` starts a comment, in the header only as a line's first character.

    (A header value may name an upstream issue such as ``#4420``; nothing in a body is written with ``#``.)
    """
    header: list[_Numbered] = []
    body: list[BodyLine] = []
    comments: list[_Numbered] = []
    in_header = True
    for number, raw in enumerate(lines, start=1):
        text = raw.strip(" ")
        if not text:
            in_header = in_header and not header
        elif text.startswith("#"):
            comments.append((number, text[1:].strip()))
        elif in_header:
            header.append((number, text))
        else:
            statement, mark, comment = text.partition("#")
            if mark:
                comments.append((number, comment.strip()))
            if not statement.isascii():
                foreign = next(character for character in statement if not character.isascii())
                raise CaseError(
                    name,
                    number,
                    f"the line holds '{foreign}' (U+{ord(foreign):04X}) outside a comment",
                    "write requests and expectations in ASCII",
                )
            body.append(BodyLine(number, len(raw) - len(raw.lstrip(" ")), statement.rstrip(" ")))
    return header, body, tuple(comments)


def _check_bounds(body: Sequence[Statement], name: str) -> None:
    """Refuse an expansion that nobody could run; it is counted, never made."""
    total = 0
    for statement in body:
        total += count_steps([statement])
        if total > STEPS_MAX:
            count = f"repeat {statement.count}" if isinstance(statement, Repeat) else "the case"
            raise CaseError(
                name,
                statement.line,
                f"{count} makes {total:,} requests and expectations of this case",
                f"write smaller counts: a case may expand to {STEPS_MAX:,}",
            )
