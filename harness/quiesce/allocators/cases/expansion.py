"""Expansion: the steps that a case means, one by one, with every repeat unrolled and every size put in.

Request lines and sizes are templates, in which loop variables stand for iteration numbers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from quiesce.allocators.cases.case import Case, ExpectedOutcome, ExpectGauge, ExpectGrowth, Repeat, Request, Statement
from quiesce.model.errors import CaseError
from quiesce.model.operations import Operation
from quiesce.model.requests import RequestError, evaluate_size, parse_request, resolve_slot

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def mentioned(template: str, variables: Collection[str]) -> tuple[str, ...]:
    """Return those of the ``variables`` that ``template`` may refer to, in their own order."""
    names = set(_NAME.findall(template))
    return tuple(variable for variable in variables if variable in names)


def templates_of(statement: Statement) -> Iterable[str]:
    """Yield every template below ``statement``."""
    match statement:
        case Request():
            yield statement.template
        case ExpectGauge():
            yield f"{statement.value} {statement.mark or ''}"
        case ExpectGrowth():
            pass
        case Repeat():
            for inner in statement.body:
                yield from templates_of(inner)


def evaluate_offset(value: str, variables: Mapping[str, int]) -> int:
    """Return the value of an expectation: a size, or with a leading ``-`` one that is taken off a mark.

    Raises :class:`quiesce.model.requests.RequestError`.
    """
    if value.startswith("-"):
        return -evaluate_size(value[1:], variables)
    return evaluate_size(value, variables)


def resolve_expectation(expectation: ExpectGauge, variables: Mapping[str, int]) -> tuple[ExpectGauge, int]:
    """Return the expectation with its mark's index put in, and its value (an offset to the mark, if it has one)."""
    value = evaluate_offset(expectation.value, variables)
    if expectation.mark is None:
        return expectation, value
    return replace(expectation, mark=resolve_slot(expectation.mark, variables)), value


def located(what: str, variables: Mapping[str, int]) -> str:
    """Return ``what`` went wrong together with the iteration in which it does."""
    bound = ", ".join(f"{name} = {value}" for name, value in variables.items())
    return f"{what} (with {bound})" if bound else what


class OperationReader:
    """Reads request templates; one that mentions no loop variable is read once."""

    def __init__(self) -> None:
        self._constant: dict[str, Operation] = {}
        self._varying: set[str] = set()

    def read(self, template: str, variables: Mapping[str, int]) -> Operation:
        """Return the operation; raises :class:`quiesce.model.requests.RequestError`."""
        operation = self._constant.get(template)
        if operation is None:
            operation = parse_request(template, variables)
            if template not in self._varying:
                if mentioned(template, variables):
                    self._varying.add(template)
                else:
                    self._constant[template] = operation
        return operation


class PerformStep(NamedTuple):
    """Perform ``operation``; ``expected`` is the outcome that its line states, or None.

    Where an optional one is not supported, the trial goes on without what it was to make.
    """

    operation: Operation
    expected: ExpectedOutcome | None
    line: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class CheckGauge:
    """Compare a gauge with ``value``, or with its reading at the expectation's mark plus ``value``.

    The expectation's ``mark`` is concrete. ``value`` is in the gauge's unit and negative only beside a mark.
    """

    expectation: ExpectGauge
    value: int


@dataclass(frozen=True, slots=True)
class IterationEnd:
    """One iteration, counted from 0, of a running repeat is over.

    ``loop`` numbers the runs of repeats in the order in which they begin, so that an inner repeat has another
    number in each outer iteration. ``line`` is the repeat's. ``measured`` says whether a growth expectation of
    this run follows: where none does, nobody needs to read a gauge.
    """

    loop: int
    iteration: int
    line: int
    measured: bool


@dataclass(frozen=True, slots=True)
class CheckGrowth:
    """Judge the growth of a gauge over the iterations of run ``loop``."""

    expectation: ExpectGrowth
    loop: int


Step: TypeAlias = PerformStep | CheckGauge | IterationEnd | CheckGrowth


def count_steps(body: Sequence[Statement]) -> int:
    """Return how many requests and expectations ``body`` expands to, without expanding it."""
    return sum(
        statement.count * count_steps(statement.body) if isinstance(statement, Repeat) else 1 for statement in body
    )


def expand(case: Case) -> Iterator[Step]:
    """Yield the steps of ``case`` lazily, always in the same order.

    Raises :class:`CaseError` when a size turns out wrong in an iteration that the parser did not evaluate.
    """
    return _Expansion(case.path).block(case.body, {})


class _Expansion:
    """One expansion: it numbers the runs of repeats and keeps the operations that never change."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._operations = OperationReader()
        self._loops = itertools.count()

    def block(self, body: Sequence[Statement], variables: Mapping[str, int]) -> Iterator[Step]:
        loop = -1
        for position, statement in enumerate(body):
            match statement:
                case Repeat():
                    loop = next(self._loops)
                    measured = position + 1 < len(body) and isinstance(body[position + 1], ExpectGrowth)
                    for iteration in range(statement.count):
                        yield from self.block(statement.body, {**variables, statement.variable: iteration})
                        yield IterationEnd(loop, iteration, statement.line, measured)
                case ExpectGrowth():
                    yield CheckGrowth(statement, loop)
                case _:
                    yield self._step(statement, variables)

    def _step(self, statement: Request | ExpectGauge, variables: Mapping[str, int]) -> Step:
        try:
            if isinstance(statement, Request):
                operation = self._operations.read(statement.template, variables)
                return PerformStep(operation, statement.expected, statement.line)
            return CheckGauge(*resolve_expectation(statement, variables))
        except RequestError as error:
            raise CaseError(self._path, statement.line, located(error.what, variables), error.instead) from error
