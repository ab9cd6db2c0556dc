"""Expansion: the steps that a case means, one by one, with every repeat unrolled and every size put in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from quiesce.cases.case import Case, ExpectedOutcome, ExpectGauge, ExpectGrowth, Repeat, Request, Statement
from quiesce.cases.templates import OperationReader, located, resolve_expectation
from quiesce.errors import CaseError
from quiesce.operations import Operation
from quiesce.requests import RequestError


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
