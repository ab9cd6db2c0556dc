"""The parser: a case file's text becomes a :class:`~quiesce.cases.case.Case`, or one error that names its line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quiesce.cases.body import BodyLine, parse_body
from quiesce.cases.case import Case, Repeat, Statement
from quiesce.cases.expansion import count_steps
from quiesce.cases.header import parse_header
from quiesce.cases.slots import check_slots
from quiesce.cases.source import read_source, split_lines
from quiesce.errors import CaseError

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
