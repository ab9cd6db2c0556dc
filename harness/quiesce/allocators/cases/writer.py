"""The writer: a case as the text that the parser reads back to an equal case.

The canonical form keeps every statement and comment of the body on its own line number, with blank lines between
them as they were. Where a case was made or shortened by a program and its line numbers leave no room, a line
takes the next free one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from quiesce.allocators.cases.body import DEFAULT_VARIABLE, INDENTATION
from quiesce.allocators.cases.case import (
    Case,
    CaseKind,
    ExpectedOutcome,
    ExpectGauge,
    ExpectGrowth,
    Repeat,
    Request,
    Statement,
)
from quiesce.allocators.cases.header import DEVICE_KEYS
from quiesce.allocators.cases.parser import FORBIDDEN_CHARACTER
from quiesce.model.backend import DeviceProfile
from quiesce.model.requests import UNITS

_KEY_COLUMNS: Final = 10


def write_case(case: Case) -> str:
    """Return the text of ``case``, with a final line end."""
    page = _Page(case)
    page.header(list(_header_lines(case)))
    page.body(case.body, 0)
    return page.finish()


def format_size(size_bytes: int) -> str:
    """Return a size with the largest unit that leaves a whole number: ``64MiB``, ``1000B``, ``0``."""
    for unit, factor in sorted(UNITS.items(), key=lambda pair: -pair[1]):
        if unit and size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return str(size_bytes)


def format_statement(statement: Statement) -> str:
    """Return the line of a statement; a repeat's is the one above its block."""
    match statement:
        case Request(template, expected):
            return template if expected is None else f"{template} -> {_outcome(expected)}"
        case ExpectGauge(gauge, comparison, value, mark):
            return f"expect {gauge} {comparison} {_value(value, mark)}"
        case ExpectGrowth(gauge, per_iteration, after):
            shown = format_size(per_iteration) if gauge.in_bytes else str(per_iteration)
            return f"expect {gauge} grows {shown} per iteration after {after}"
        case Repeat(count, variable):
            return f"repeat {count}:" if variable == DEFAULT_VARIABLE else f"repeat {count} as {variable}:"


def _outcome(expected: ExpectedOutcome) -> str:
    return expected.kind if expected.code is None else f"{expected.kind} {expected.code}"


def _value(value: str, mark: str | None) -> str:
    if mark is None:
        return value
    if value.startswith("-"):
        return f"mark {mark} - {value[1:]}"
    return f"mark {mark}" if value == "0" else f"mark {mark} + {value}"


def _header_lines(case: Case) -> Iterator[str]:
    yield _header_line("title", case.title)
    if case.kind is not CaseKind.REGRESSION:
        yield _header_line("kind", case.kind)
    for upstream in case.upstream:
        yield _header_line("upstream", upstream)
    singles: Mapping[str, str] = {
        "fault": case.fault,
        "finds": case.finds,
        "needs": ", ".join(sorted(case.needs)),
        "promise": ", ".join(sorted(case.promises)),
        "device": " ".join(_device_words(case.device)),
    }
    for key, value in singles.items():
        if value:
            yield _header_line(key, value)
    for known in case.known:
        yield _header_line("known", f"{known.subject} {known.versions} {known.number}")


def _header_line(key: str, value: str) -> str:
    return f"{key + ':':<{_KEY_COLUMNS}}{_one_line(value)}"


def _device_words(device: DeviceProfile) -> Iterator[str]:
    default = DeviceProfile()
    for key, field in DEVICE_KEYS.items():
        value = getattr(device, field)
        if value != getattr(default, field):
            yield f"{key}={format_size(value) if isinstance(value, int) and key != 'devices' else value}"


def _one_line(text: str) -> str:
    return FORBIDDEN_CHARACTER.sub(" ", text).strip()


class _Page:
    """The lines written so far, and the comments that still wait for their place."""

    def __init__(self, case: Case) -> None:
        self._lines: list[str] = []
        taken = set(_line_numbers(case.body))
        comments = sorted(case.comments, key=lambda comment: comment[0])
        self._trailing = {line: text for line, text in comments if line in taken}
        self._waiting = [(line, text) for line, text in comments if line not in taken]

    def header(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._comments_at(self._cursor, "")
            self._lines.append(line)
        # The blank line that ends the header comes before the first line that is free of comments.
        self._comments_at(self._cursor, "")
        self._lines.append("")

    def body(self, body: Sequence[Statement], level: int) -> None:
        indentation = " " * (level * INDENTATION)
        for statement in body:
            self._comments_before(statement.line, indentation)
            self._place(statement.line, indentation + format_statement(statement) + self._comment_on(statement.line))
            if isinstance(statement, Repeat):
                self.body(statement.body, level + 1)

    def finish(self) -> str:
        while self._waiting:
            self._comment("")
        return "\n".join(self._lines) + "\n"

    @property
    def _cursor(self) -> int:
        return len(self._lines) + 1

    def _place(self, line: int, text: str) -> None:
        self._lines += [""] * (line - self._cursor)
        self._lines.append(text)

    def _comments_at(self, line: int, indentation: str) -> None:
        while self._waiting and self._waiting[0][0] <= line:
            self._comment(indentation)
            line = self._cursor

    def _comments_before(self, line: int, indentation: str) -> None:
        while self._waiting and self._waiting[0][0] < line:
            self._comment(indentation)

    def _comment(self, indentation: str) -> None:
        line, text = self._waiting.pop(0)
        self._place(line, f"{indentation}# {_one_line(text)}".rstrip())

    def _comment_on(self, line: int) -> str:
        text = self._trailing.pop(line, None)
        return "" if text is None else f"  # {_one_line(text)}".rstrip()


def _line_numbers(body: Sequence[Statement]) -> Iterator[int]:
    for statement in body:
        yield statement.line
        if isinstance(statement, Repeat):
            yield from _line_numbers(statement.body)
