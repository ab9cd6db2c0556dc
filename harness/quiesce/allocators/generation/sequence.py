"""A generated sequence as a value: the device it asks for, its operations, and a loop whose cost is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from quiesce.allocators.cases import Case, CaseKind, ExpectGrowth, PerformStep, Repeat, Request, Statement, Step, expand
from quiesce.model.backend import DeviceProfile
from quiesce.model.errors import CaseError
from quiesce.model.gauges import Gauge
from quiesce.model.operations import Allocate, MemoryKind, Operation
from quiesce.model.requests import format_request

LOOP_VARIABLE: Final = "i"


def sequence_of(case: Case, *, hostile: bool = True) -> GeneratedSequence:
    """Return a case as a sequence, for an explicit example beside drawn ones; inverse to ``GeneratedSequence.case``.

    Outcomes and gauges that the case states are left out: a sequence is judged by the rules alone. Raises
    :class:`CaseError` where the growth over a loop is stated anywhere but at the end.
    """
    body, loop = case.body, None
    match body:
        case (*_, Repeat(count, variable, inner), ExpectGrowth(gauge, 0, after)) if variable == LOOP_VARIABLE:
            templates = tuple(statement.template for statement in inner if isinstance(statement, Request))
            if len(templates) == len(inner):
                body, loop = body[:-2], Loop(count, templates, gauge, after)
        case _:
            pass
    stated = next((statement for statement in body if isinstance(statement, ExpectGrowth)), None)
    if stated is not None:
        raise CaseError(
            case.path,
            stated.line,
            "a sequence has one loop, at its end, that makes requests and grows by 0",
            f"end the case with 'repeat COUNT as {LOOP_VARIABLE}:' and its growth, or run it as a case",
        )
    steps = expand(replace(case, body=body))
    operations = tuple(step.operation for step in steps if isinstance(step, PerformStep))
    return GeneratedSequence(case.device, operations, loop, hostile)


class Printer(Protocol):
    """What Hypothesis shows examples with."""

    def text(self, text: str) -> None:
        """Show a text."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Request templates that are repeated ``count`` times, and the gauge that then grows by 0 per iteration."""

    count: int
    templates: tuple[str, ...]
    gauge: Gauge
    after: int


@dataclass(frozen=True, slots=True, repr=False)
class GeneratedSequence:
    """One sequence. ``hostile`` says whether it may contain misuse; no sequence contains a race of its own."""

    device: DeviceProfile
    operations: tuple[Operation, ...]
    loop: Loop | None = None
    hostile: bool = False

    def steps(self) -> Iterator[Step]:
        """Yield what lockstep performs."""
        for number, operation in enumerate(self.operations, 1):
            yield PerformStep(operation, None, number, optional=_is_optional(operation))
        if self.loop is not None:
            yield from expand(replace(self.case(), body=self._loop_statements(len(self.operations) + 1)))

    def case(self) -> Case:
        """Return the sequence as the body of a nameless case."""
        body: list[Statement] = [
            Request(format_request(operation), None, number) for number, operation in enumerate(self.operations, 1)
        ]
        body += self._loop_statements(len(body) + 1)
        return Case(
            identifier="",
            path="",
            title="",
            kind=CaseKind.FOUND,
            upstream=(),
            fault="",
            finds="",
            needs=frozenset(),
            promises=frozenset(),
            device=self.device,
            known=(),
            body=tuple(body),
        )

    def _loop_statements(self, line: int) -> tuple[Statement, ...]:
        loop = self.loop
        if loop is None:
            return ()
        inner = tuple(Request(template, None, number) for number, template in enumerate(loop.templates, line + 1))
        growth = ExpectGrowth(loop.gauge, 0, loop.after, line + len(inner) + 1)
        return (Repeat(loop.count, LOOP_VARIABLE, inner, line), growth)

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        """Show the request lines, where Hypothesis would show the fields."""
        printer.text("..." if cycle else repr(self))

    def __repr__(self) -> str:
        lines = [format_request(operation) for operation in self.operations]
        if self.loop is not None:
            lines += [f"repeat {self.loop.count}:", *(f"    {template}" for template in self.loop.templates)]
        shown = "\n    ".join(lines) or "(nothing)"
        return f"{'hostile' if self.hostile else 'valid'} sequence on {self.device}:\n    {shown}\n"


def _is_optional(operation: Operation) -> bool:
    """Whether no claims oblige a backend to it: memory of the host, aligned to more than there is a word for."""
    return isinstance(operation, Allocate) and operation.kind is MemoryKind.PINNED and bool(operation.alignment_bytes)
