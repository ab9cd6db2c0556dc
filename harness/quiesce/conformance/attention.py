"""Attention: a wrapping backend that holds every answer against the contract, whoever asked.

The oracle judges what the allocator did, and believes what the backend says of it. This judges what the backend
says. It changes no answer and ends no trial: what it notices goes into a notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quiesce import operations as ops
from quiesce.answers import AnsweringContext, describe_backend, open_context
from quiesce.backend import Backend, BackendFault, Capability, Closing, Context, Description, DeviceProfile, Reply
from quiesce.cases.effects import makes_of
from quiesce.conformance.ledger import Book
from quiesce.conformance.notebook import Notebook
from quiesce.conformance.obligations import obliging
from quiesce.contract import (
    CLAIMS_SERVED,
    GAUGES_READ,
    LEDGER_FITS,
    LEDGER_TOLD,
    NEVER_FALL,
    OUTCOMES_FIT,
    OWN_NAMES,
    STAYS_THE_SAME,
)
from quiesce.errors import BackendUnavailable
from quiesce.gauges import Gauge, Readings, Source
from quiesce.operations import Operation
from quiesce.outcomes import Allocated, Done, Outcome, Unsupported, describe

NOTED: Final = (
    STAYS_THE_SAME,
    GAUGES_READ,
    NEVER_FALL,
    CLAIMS_SERVED,
    OUTCOMES_FIT,
    LEDGER_TOLD,
    LEDGER_FITS,
    OWN_NAMES,
)
"""The rules that are noted here, while other things run."""
_MAKES_A_BLOCK: Final = (ops.Allocate, ops.Stage)
_SAME: Final = "the same Description every time: decide once what it says, when the backend is made"


class Attentive:
    """``backend``, watched; ``first`` is what it said of itself before. Raises what :mod:`quiesce.answers` raises."""

    def __init__(self, backend: Backend, notebook: Notebook, first: Description | None = None) -> None:
        self._backend = backend
        self._notebook = notebook
        self._first = first

    def describe(self) -> Description:
        """Return the backend's own description, as it was the first time."""
        if self._first is None:
            self._first = describe_backend(self._backend)
            return self._first
        self._notebook.looked[STAYS_THE_SAME] += 1
        try:
            description = describe_backend(self._backend)
        except (BackendFault, BackendUnavailable) as ending:
            self._notebook.note(STAYS_THE_SAME, "ending", _SAME, f"describe() answered once, and then: {ending}")
            return self._first
        if description != self._first:
            changed = [
                name for name in Description.__slots__ if getattr(description, name) != getattr(self._first, name)
            ]
            self._notebook.note(
                STAYS_THE_SAME,
                tuple(changed),
                _SAME,
                f"describe() answers with another {' and another '.join(changed)} than the first time",
            )
        return self._first

    def open(self, profile: DeviceProfile) -> Context:
        """Open the backend and watch its context."""
        description = self.describe()
        context = open_context(self._backend, profile)
        self._notebook.served[Capability.FLAVOUR] += profile.flavour is not DeviceProfile().flavour
        return AttentiveContext(context, description, self._notebook)


class AttentiveContext:
    """A context, watched."""

    def __init__(self, context: AnsweringContext, description: Description, notebook: Notebook) -> None:
        self._context = context
        self._capabilities = description.capabilities
        self._described = frozenset((g, s) for g, sources in description.gauges.items() for s in sources)
        self._notebook = notebook
        self._book = Book(description, notebook)
        self._last: Readings = {}
        self._operation: Operation | None = None
        self._failed = False

    @property
    def foresees(self) -> bool:
        """Whether the context has a use for :meth:`foresee`."""
        return self._context.foresees

    def foresee(self, operations: Iterable[Operation]) -> None:
        """Tell the context what is performed next. What that makes may be seen by the time somebody closes instead."""
        self._context.foresee(self._named(operations))

    def perform(self, operation: Operation) -> Reply:
        """Pass an operation on, and look at the reply."""
        self._operation = operation
        self._book.make(tuple(making.slot for making in makes_of(operation)))
        try:
            reply = self._context.perform(operation)
        except BackendFault:
            self._failed = True
            raise
        except KeyboardInterrupt:
            self._book.tear_out()
            raise
        self._look(operation, reply.outcome)
        self._book.enter(reply.observations, operation)
        return reply

    def readings(self) -> Readings:
        """Read the gauges, and look at them."""
        try:
            readings = self._context.readings()
        except BackendFault:
            self._failed = True
            raise
        self._read(readings)
        return readings

    def close(self) -> Closing:
        """Close the context, and look at what it leaves."""
        self._operation = None
        closing = self._context.close()
        self._book.enter(closing.observations, None)
        if not self._failed:  # a dead subject has no gauges any more
            self._read(closing.readings)
        return closing

    def _named(self, operations: Iterable[Operation]) -> Iterator[Operation]:
        for operation in operations:
            self._book.make(tuple(making.slot for making in makes_of(operation)))
            yield operation

    def _look(self, operation: Operation, outcome: Outcome) -> None:
        notebook, makes = self._notebook, isinstance(operation, _MAKES_A_BLOCK)
        obligation = obliging(operation)
        if isinstance(outcome, Unsupported):
            if obligation is not None and obligation <= self._capabilities:
                notebook.looked[CLAIMS_SERVED] += 1
                claims = ", ".join(sorted(obligation))
                instead = (
                    f"serve it, or do not claim {claims}" if claims else "Done(): every backend lets itself be marked"
                )
                notebook.note(CLAIMS_SERVED, type(operation).__name__, instead, describe(outcome), operation)
            return
        if not isinstance(outcome, Allocated | Done):
            return
        notebook.served.update(obligation or ())
        notebook.looked[CLAIMS_SERVED] += bool(obligation)
        notebook.looked[OUTCOMES_FIT] += 1
        if isinstance(outcome, Allocated) is not makes:
            instead = "Allocated(address) for what makes a block" if makes else "Done() for what makes no block"
            notebook.note(OUTCOMES_FIT, type(operation).__name__, instead, describe(outcome), operation)

    def _read(self, readings: Readings) -> None:
        notebook = self._notebook
        notebook.looked[GAUGES_READ] += bool(self._described)
        if readings.keys() != self._described:
            for gauge, source in sorted(self._described - readings.keys()):
                self._note_missing(gauge, source, readings)
            for gauge, source in sorted(readings.keys() - self._described):
                instead = f"'{gauge}' as a {source} in the gauges of describe(), or leave it out of readings()"
                notebook.note(GAUGES_READ, gauge, instead, f"{gauge} is read as a {source}, and not described as one")
        for gauge in (Gauge.BACKING_CALLS, Gauge.COST):
            for source in Source:
                self._compare(gauge, source, readings)
        self._last = readings
        self._book.compare(readings, self._operation)

    def _note_missing(self, gauge: Gauge, source: Source, readings: Readings) -> None:
        other = Source.LEDGER if source is Source.CLAIM else Source.CLAIM
        if (gauge, other) in readings and (gauge, other) not in self._described:
            instead = "the same source in both: a claim is what the allocator counts, a ledger is independent of it"
            observed = f"{gauge} is described as a {source} and read as a {other}"
        else:
            instead = f"({gauge!s}, {source!s}) in every readings(), or take it out of the gauges of describe()"
            observed = f"{gauge} is described as a {source} and not read"
        self._notebook.note(GAUGES_READ, gauge, instead, observed, self._operation)

    def _compare(self, gauge: Gauge, source: Source, readings: Readings) -> None:
        now, before = readings.get((gauge, source)), self._last.get((gauge, source))
        if now is None or before is None:
            return
        self._notebook.looked[NEVER_FALL] += 1
        if now < before:
            instead = f"'{gauge}' as a count since the context was opened: it rises or stays"
            self._notebook.note(NEVER_FALL, gauge, instead, f"{gauge} fell from {before} to {now}", self._operation)
