"""Templates: request lines and sizes in which loop variables stand for iteration numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from quiesce.cases.case import ExpectGauge, ExpectGrowth, Repeat, Request, Statement
from quiesce.operations import Operation
from quiesce.requests import evaluate_size, parse_request, resolve_slot

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

    Raises :class:`quiesce.requests.RequestError`.
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
        """Return the operation; raises :class:`quiesce.requests.RequestError`."""
        operation = self._constant.get(template)
        if operation is None:
            operation = parse_request(template, variables)
            if template not in self._varying:
                if mentioned(template, variables):
                    self._varying.add(template)
                else:
                    self._constant[template] = operation
        return operation
