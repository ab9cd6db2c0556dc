"""The book of one context's ledger: what it observed is entered, and has to fit together."""

from __future__ import annotations

from typing import Final

from quiesce.amounts import bytes_in_words
from quiesce.backend import Capability, Description
from quiesce.conformance.notebook import Notebook
from quiesce.contract import LEDGER_FITS, LEDGER_TOLD, OWN_NAMES
from quiesce.gauges import Gauge, Readings, Source
from quiesce.observations import (
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
from quiesce.operations import MemoryKind, Operation, Slot
from quiesce.requests import is_slot

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
