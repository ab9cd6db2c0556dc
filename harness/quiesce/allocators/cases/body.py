"""The body of a case file: requests, expectations and repeat blocks, line by line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.allocators.cases.case import (
    Comparison,
    ExpectedKind,
    ExpectedOutcome,
    ExpectGauge,
    ExpectGrowth,
    Repeat,
    Request,
    Statement,
)
from quiesce.allocators.cases.expansion import located, mentioned, resolve_expectation
from quiesce.allocators.cases.wording import instead_of, instead_of_request
from quiesce.model.errors import CaseError
from quiesce.model.gauges import Gauge
from quiesce.model.operations import Allocate, Operation, Stage
from quiesce.model.outcomes import ERROR_CODES
from quiesce.model.requests import RequestError, evaluate_size, parse_request

INDENTATION: Final = 4
"""Spaces for each level of nesting."""
NESTING_MAX: Final = 6
DEFAULT_VARIABLE: Final = "i"
COUNT_DIGITS_MAX: Final = 18

_REPEAT = re.compile(r"repeat\s+([0-9]+)(?:\s+as\s+(\S+?))?\s*:\Z")
_REPEAT_FORM = "write 'repeat COUNT:' or 'repeat COUNT as NAME:' above an indented block"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = frozenset({"SIZE_MAX"})
_GROWTH = re.compile(r"expect\s+(\S+)\s+grows\s+(\S+)\s+per\s+iteration\s+after\s+(\S+)\Z")
_GROWTH_FORM = "write 'expect GAUGE grows N per iteration after W'"
_GAUGE_FORM = "write 'expect GAUGE == SIZE' or 'expect GAUGE == mark NAME + SIZE'"
_UNIT = re.compile(r"(?<![A-Za-z0-9_])[0-9]+[A-Za-z]")
_HEADER_LIKE = re.compile(r"[a-z]+:(?:\s|\Z)")

Scope = Mapping[str, int]
"""The loop variables around a line, outermost first, each with its last value."""


@dataclass(frozen=True, slots=True)
class BodyLine:
    """One line of the body without its comment."""

    line: int
    indentation: int
    text: str


def parse_body(lines: Sequence[BodyLine], path: str) -> tuple[Statement, ...]:
    """Return the statements of the body. Raises :class:`CaseError`."""
    return _Body(lines, path).block(0, {})


class _Body:
    """Walks the lines once, one block at a time."""

    def __init__(self, lines: Sequence[BodyLine], path: str) -> None:
        self._lines = lines
        self._path = path
        self._next = 0

    def block(self, level: int, scope: Scope) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if line.indentation < level * INDENTATION and line.indentation % INDENTATION == 0:
                break
            if line.indentation != level * INDENTATION:
                raise self._error(
                    line,
                    f"the line is indented by {line.indentation} spaces",
                    f"write {level * INDENTATION} here: {INDENTATION} for each 'repeat' around it",
                )
            self._next += 1
            statements.append(self._statement(line, level, scope, statements))
        return tuple(statements)

    def _statement(self, line: BodyLine, level: int, scope: Scope, above: Sequence[Statement]) -> Statement:
        match line.text.split(maxsplit=1)[0].rstrip(":"):
            case "repeat":
                return self._repeat(line, level, scope)
            case "expect":
                words = line.text.split()
                if "grows" in words:
                    return self._growth(line, above)
                return self._gauge(line, words, scope)
        return self._request(line, scope)

    def _error(self, line: BodyLine, what: str, instead: str) -> CaseError:
        return CaseError(self._path, line.line, what, instead)

    def _repeat(self, line: BodyLine, level: int, scope: Scope) -> Repeat:
        match = _REPEAT.match(line.text)
        if match is None:
            raise self._error(line, f"'{line.text}' is no repeat line", _REPEAT_FORM)
        if len(match[1]) > COUNT_DIGITS_MAX:
            raise self._error(line, f"a count of {len(match[1])} digits can never be run", "write a smaller count")
        count = int(match[1])
        variable = match[2] or DEFAULT_VARIABLE
        if count == 0:
            raise self._error(line, "'repeat 0' never runs its block", "write a count of at least 1")
        if not _VARIABLE.match(variable) or variable in _RESERVED:
            raise self._error(line, f"'{variable}' cannot name a loop variable", "write letters, digits and '_'")
        if variable in scope:
            raise self._error(
                line,
                f"the loop variable '{variable}' already belongs to an outer repeat",
                f"name this one, such as: repeat {count} as {variable}{len(scope) + 1}:",
            )
        if level + 1 > NESTING_MAX:
            raise self._error(line, f"more than {NESTING_MAX} repeats are nested", "split the case")
        body = self.block(level + 1, {**scope, variable: count - 1})
        if not body:
            raise self._error(
                line, "the repeat has no block", f"indent the lines it repeats by {(level + 1) * INDENTATION} spaces"
            )
        return Repeat(count, variable, body, line.line)

    def _request(self, line: BodyLine, scope: Scope) -> Request:
        if _HEADER_LIKE.match(line.text):
            raise self._error(
                line, f"'{line.text}' is no request", "header lines stand above the first blank line: move it there"
            )
        text, arrow, outcome = line.text.partition("->")
        template = " ".join(text.split())
        operation: Operation | None = None
        for variables in _corners(template, scope):
            try:
                operation = parse_request(template, variables)
            except RequestError as error:
                raise self._error(line, located(error.what, variables), instead_of_request(error)) from error
        expected = self._expected(line, " ".join(outcome.split())) if arrow else None
        if expected is not None:
            self._check_possible(line, isinstance(operation, (Allocate, Stage)), expected)
        return Request(template, expected, line.line)

    def _expected(self, line: BodyLine, text: str) -> ExpectedOutcome:
        if text in set(ExpectedKind):
            return ExpectedOutcome(ExpectedKind(text))
        first, _, code = text.partition(" ")
        if first != ExpectedKind.REJECTED:
            raise self._error(line, f"unknown outcome '{text}'", instead_of(text, ExpectedKind))
        if code not in ERROR_CODES:
            raise self._error(line, f"unknown error code '{code}'", instead_of(code, ERROR_CODES))
        return ExpectedOutcome(ExpectedKind.REJECTED, code)

    def _check_possible(self, line: BodyLine, makes_block: bool, expected: ExpectedOutcome) -> None:
        if makes_block and expected.kind is ExpectedKind.DONE:
            raise self._error(line, "a request that makes a block is never just done", "write '-> allocated'")
        if not makes_block and expected.kind is ExpectedKind.ALLOCATED:
            raise self._error(line, "this request makes no block", "write '-> done'")

    def _named_gauge(self, line: BodyLine, word: str) -> Gauge:
        try:
            return Gauge(word)
        except ValueError:
            raise self._error(line, f"unknown gauge '{word}'", instead_of(word, Gauge)) from None

    def _check_unit(self, line: BodyLine, gauge: Gauge, value: str) -> None:
        if not gauge.in_bytes and _UNIT.search(value):
            raise self._error(line, f"'{gauge}' counts things and '{value}' has a unit", "write a plain number")

    def _growth(self, line: BodyLine, above: Sequence[Statement]) -> ExpectGrowth:
        match = _GROWTH.match(line.text)
        if match is None:
            raise self._error(line, f"'{line.text}' is no growth expectation", _GROWTH_FORM)
        gauge = self._named_gauge(line, match[1])
        self._check_unit(line, gauge, match[2])
        if not re.fullmatch(rf"[0-9]{{1,{COUNT_DIGITS_MAX}}}", match[3]):
            raise self._error(line, f"'{match[3]}' is no number of iterations", _GROWTH_FORM)
        loop = next((statement for statement in reversed(above) if not isinstance(statement, ExpectGrowth)), None)
        if not isinstance(loop, Repeat):
            raise self._error(
                line, "there is no repeat block directly above", "write it below the block, indented like its 'repeat'"
            )
        after = int(match[3])
        # A slope takes two readings behind the warm-up; what a cumulative gauge adds, one more.
        least = after + (3 if gauge.cumulative else 2)
        if loop.count < least:
            raise self._error(
                line,
                f"{loop.count} iterations leave no slope of '{gauge}' after {after}",
                f"repeat at least {least} times, or write a smaller warm-up",
            )
        try:
            return ExpectGrowth(gauge, evaluate_size(match[2], {}), after, line.line)
        except RequestError as error:
            raise self._error(line, error.what, error.instead) from error

    def _gauge(self, line: BodyLine, words: Sequence[str], scope: Scope) -> ExpectGauge:
        if len(words) < 4:
            raise self._error(line, f"'{line.text}' is no expectation", _GAUGE_FORM)
        gauge = self._named_gauge(line, words[1])
        if words[2] not in set(Comparison):
            raise self._error(line, f"unknown comparison '{words[2]}'", f"write one of {', '.join(Comparison)}")
        comparison = Comparison(words[2])
        mark: str | None = None
        match words[3:]:
            case ["mark", name]:
                mark, size, sign = name, "0", "+"
            case ["mark", name, ("+" | "-") as sign, size]:
                mark = name
            case [size]:
                sign = "+"
            case _:
                raise self._error(line, f"'{' '.join(words[3:])}' is no value", _GAUGE_FORM)
        if size[0] in "+-":
            raise self._error(line, f"'{size}' starts with a sign", "write a size of at least 0")
        self._check_unit(line, gauge, size)
        # Taking nothing off a mark and adding nothing to it are one expectation with one way to write it.
        value = f"-{size}" if sign == "-" and size != "0" else size
        expectation = ExpectGauge(gauge, comparison, value, mark, line.line)
        for variables in _corners(f"{size} {mark or ''}", scope):
            try:
                resolve_expectation(expectation, variables)
            except RequestError as error:
                raise self._error(line, located(error.what, variables), error.instead) from error
        return expectation


def _corners(template: str, scope: Scope) -> list[Scope]:
    """Bind the variables that the template mentions to their first and last values, in every combination."""
    used = mentioned(template, scope)
    ends = [(0, scope[name]) if scope[name] else (0,) for name in used]
    rest = {name: 0 for name in scope if name not in used}
    return [dict(zip(used, values, strict=True)) | rest for values in itertools.product(*ends)]
