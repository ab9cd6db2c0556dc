"""The monitor: a wrapping backend that holds every answer against the contract, whoever asked.

What one context's ledger observed is entered in a book, and has to fit together. What was noticed is kept as notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from quiesce.allocators.answers import AnsweringContext, describe_backend, open_context
from quiesce.allocators.cases import makes_of
from quiesce.allocators.conformance.obligations import obliging
from quiesce.allocators.lockstep import contract_finding
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, BackendFault, Capability, Closing, Context, Description, DeviceProfile, Reply
from quiesce.model.errors import BackendUnavailable
from quiesce.model.findings import Finding
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleCreated,
    HandleDestroyed,
    Observation,
    StreamSynchronized,
)
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import Allocated, Done, Outcome, Unsupported, describe
from quiesce.model.requests import format_request, is_slot
from quiesce.model.rules import (
    CLAIMS_SERVED,
    GAUGES_READ,
    LEDGER_FITS,
    LEDGER_TOLD,
    NEVER_FALL,
    OUTCOMES_FIT,
    OWN_NAMES,
    STAYS_THE_SAME,
)
from quiesce.model.wording import bytes_in_words

NOTES_MAX: Final = 5
"""So many different notes are kept for each rule: the rest would say the same."""


class Notebook:
    """Notes by rule, each kept once. ``place`` is what runs at the moment, and is put into every note."""

    def __init__(self) -> None:
        self.place = ""
        self.looked: Counter[str] = Counter()
        """How often a rule had something to look at."""
        self.served: Counter[Capability] = Counter()
        """How many requests that a capability is about were served."""
        self._notes: dict[str, dict[Hashable, Finding]] = {}

    def note(self, rule: str, key: Hashable, instead: str, observed: str, operation: Operation | None = None) -> None:
        """Keep a note unless there is one with this key. ``instead`` says what to write instead."""
        notes = self._notes.setdefault(rule, {})
        if key in notes or len(notes) >= NOTES_MAX:
            return
        request = f", in reply to '{format_request(operation)}'" if operation is not None else ""
        where = f", in {self.place}" if self.place else ""
        notes[key] = contract_finding(rule, instead, f"{observed}{request}{where}")

    def enter(self, later: Notebook) -> None:
        """Enter what another notebook holds, as if it had been noticed here."""
        self.looked.update(later.looked)
        self.served.update(later.served)
        for rule, noted in later._notes.items():
            notes = self._notes.setdefault(rule, {})
            for key, finding in noted.items():
                if key not in notes and len(notes) < NOTES_MAX:
                    notes[key] = finding

    def findings(self, rule: str) -> tuple[Finding, ...]:
        """Return what was noted about a rule."""
        return tuple(self._notes.get(rule, {}).values())


_COUNTED: Final = {
    Gauge.RESERVED: (MemoryKind.DEVICE, MemoryKind.MANAGED),
    Gauge.PINNED: (MemoryKind.PINNED,),
}
_ORDER: Final = (EventRecorded, EventWaited, EventCompleted, StreamSynchronized, DeviceSynchronized)


class Book:
    """Follows the observations of one context; ``description`` says whether its ledger sees all backing memory."""

    def __init__(self, description: Description, notebook: Notebook) -> None:
        self._complete = Capability.BACKING_LEDGER in description.capabilities
        self._notebook = notebook
        self._held: dict[tuple[MemoryKind, int, int], int] = {}
        self._held_bytes = dict.fromkeys(MemoryKind, 0)
        self._freed: set[tuple[MemoryKind, int, int]] = set()
        self._made: set[Slot] = set()
        self._began: dict[Gauge, int] | None = None

    def make(self, slots: tuple[Slot, ...]) -> None:
        """Enter slots that a request makes; their names are the sequence's from now on."""
        self._made.update(slots)

    def tear_out(self) -> None:
        """Note that observations were lost, as by an interrupt: the rest adds up to nothing."""
        self._complete = False

    def enter(self, observations: tuple[Observation, ...], operation: Operation | None) -> None:
        """Enter what was observed while an operation ran, or (None) while the context closed."""
        for seen in observations:
            match seen:
                case BackingAllocated():
                    self._allocate(seen, operation)
                case BackingFreed():
                    self._free(seen, operation)
                case _:
                    if isinstance(seen, _ORDER):
                        self._notebook.served[Capability.ORDER_LEDGER] += 1
                    self._name(seen, operation)

    def _allocate(self, seen: BackingAllocated, operation: Operation | None) -> None:
        notebook, key = self._notebook, (seen.kind, seen.device, seen.address)
        notebook.looked[LEDGER_TOLD] += 1
        notebook.served[Capability.BACKING_LEDGER] += 1
        if not self._complete:
            return
        notebook.looked[LEDGER_FITS] += 1
        if seen.size_bytes < 0 or (seen.size_bytes and seen.address <= 0):
            instead = "a BackingAllocated with the address and size that the backing allocator gave"
            observed = f"a backing allocation of {bytes_in_words(seen.size_bytes)}{'' if seen.address else ' at null'}"
            notebook.note(LEDGER_FITS, "figures", instead, observed, operation)
        if key in self._held:
            instead = "a BackingFreed for every backing free, in the order of the calls: it is missing, or told twice"
            observed = (
                f"{bytes_in_words(seen.size_bytes)} allocated where {bytes_in_words(self._held[key])} are held already"
            )
            notebook.note(LEDGER_FITS, "twice", instead, observed, operation)
        self._held_bytes[seen.kind] += seen.size_bytes - self._held.get(key, 0)
        self._held[key] = seen.size_bytes
        self._freed.discard(key)

    def _free(self, seen: BackingFreed, operation: Operation | None) -> None:
        if not self._complete:
            return
        notebook, key = self._notebook, (seen.kind, seen.device, seen.address)
        size = self._held.pop(key, None)
        if size is None:
            if key in self._freed or self._began_empty:
                instead = "one BackingFreed for each BackingAllocated, with its address, kind and device"
                what = "twice" if key in self._freed else "whose allocation was not reported"
                notebook.note(LEDGER_FITS, "unknown", instead, f"a free of backing memory {what}", operation)
            return
        self._freed.add(key)
        self._held_bytes[seen.kind] -= size
        if size != seen.size_bytes:
            instead = "a BackingFreed with the size that was allocated there"
            observed = (
                f"a backing free of {bytes_in_words(seen.size_bytes)} where {bytes_in_words(size)} were allocated"
            )
            notebook.note(LEDGER_FITS, "size", instead, observed, operation)

    def _name(self, seen: Observation, operation: Operation | None) -> None:
        names: tuple[str | None, ...] = ()
        match seen:
            case EventRecorded(event, stream):
                names = (event, stream)
            case EventWaited(event, waiter):
                names = (event, waiter)
            case EventCompleted(only) | StreamSynchronized(only) | HandleCreated(_, only) | HandleDestroyed(_, only):
                names = (only,)
        for name in filter(None, names):
            self._notebook.looked[OWN_NAMES] += 1
            if is_slot(name) and name not in self._made:
                instead = (
                    f"'internal:{name}', or the slot where the sequence made it: a bare word means the sequence's own"
                )
                observed = f"{type(seen).__name__} names '{name}', which the sequence did not make"
                self._notebook.note(OWN_NAMES, type(seen).__name__, instead, observed, operation)

    @property
    def _began_empty(self) -> bool:
        """Whether the context is known to have begun without backing memory that nobody told of."""
        return bool(self._began) and not any((self._began or {}).values())

    def compare(self, readings: Readings, operation: Operation | None) -> None:
        """Compare what the ledger reads with the sum of what it observed, or with that sum since the first reading."""
        if not self._complete:
            return
        read = {gauge: readings[gauge, Source.LEDGER] for gauge in _COUNTED if (gauge, Source.LEDGER) in readings}
        if self._began is None:
            self._began = read
        for gauge, value in read.items():
            told = sum(self._held_bytes[kind] for kind in _COUNTED[gauge])
            if value not in (told, told + self._began.get(gauge, 0)):
                instead = (
                    f"'{gauge}' as its ledger counts it, and every call that changes it as an observation; "
                    "what the backend counts itself is a claim"
                )
                observed = f"{gauge} of {value} by its ledger, {told} by what it observed"
                self._notebook.note(LEDGER_FITS, gauge, instead, observed, operation)


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
    """``backend``, watched; ``first`` is what it said of itself before. Raises what :mod:`answers` raises."""

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
