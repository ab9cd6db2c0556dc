"""A backend with nothing wrong, and one for each thing that a third party gets wrong: a wrapper around it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from quiesce.backends.reference import backend as reference
from quiesce.model import operations as ops
from quiesce.model.backend import (
    Backend,
    BackendFault,
    Capability,
    Closing,
    Context,
    Description,
    DeviceProfile,
    Promise,
    Reply,
)
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import BackingAllocated, BackingFreed, EventRecorded, Observation
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Allocated, Done, Rejected, Unsupported

SMALL = frozenset(
    {
        Capability.MEMORY,
        Capability.POOL,
        Capability.CAPACITY,
        Capability.STREAMS,
        Capability.LEGACY_DEFAULT_STREAM,
        Capability.LAUNCH,
        Capability.STALL,
        Capability.BACKING_LEDGER,
        Capability.ORDER_LEDGER,
    }
)
"""What a backend of moderate ambition claims; the tests would take long with more."""


class Small:
    """The reference, as far as it claims little."""

    def describe(self) -> Description:
        promises = frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.TRACKS_USES, Promise.TRIMS_TO_ZERO})
        return replace(reference().describe(), capabilities=SMALL, promises=promises)

    def open(self, profile: DeviceProfile) -> Context:
        return reference().open(profile)


@dataclass
class Altered:
    """A small reference, with its description, its openings or its contexts altered."""

    describing: Callable[[Description], Any] = lambda description: description
    opening: Callable[[DeviceProfile], Any] | None = None
    wrapping: Callable[[Context], Any] = lambda context: context
    backing: Backend = field(default_factory=Small)

    def describe(self) -> Description:
        description: Description = self.describing(self.backing.describe())
        return description

    def open(self, profile: DeviceProfile) -> Context:
        opened: Context = self.opening(profile) if self.opening else self.wrapping(self.backing.open(profile))
        return opened


class Passing:
    """A context that passes everything on."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def perform(self, operation: Operation) -> Reply:
        return self.context.perform(operation)

    def readings(self) -> Readings:
        return self.context.readings()

    def close(self) -> Closing:
        return self.context.close()


def answering(alter: Callable[[Operation, Reply], Any]) -> Altered:
    """Return a small reference with its replies altered."""

    class Answering(Passing):
        def perform(self, operation: Operation) -> Reply:
            reply: Reply = alter(operation, super().perform(operation))
            return reply

    return Altered(wrapping=Answering)


def reading(alter: Callable[[dict[tuple[Gauge, Source], int]], Any]) -> Altered:
    """Return a small reference with its readings altered, also the last ones."""

    class Reading(Passing):
        def readings(self) -> Readings:
            return self._altered(super().readings())

        def close(self) -> Closing:
            closing = super().close()
            return replace(closing, readings=self._altered(closing.readings))

        def _altered(self, readings: Readings) -> Readings:
            altered: Readings = alter(dict(readings))
            return altered

    return Altered(wrapping=Reading)


def described(**changes: Any) -> Altered:
    """Return a small reference with fields of its description replaced."""
    return Altered(lambda description: replace(description, **changes))


def observing(alter: Callable[[tuple[Observation, ...]], Iterable[Observation]]) -> Altered:
    """Return a small reference with its observations altered."""
    return answering(lambda _, reply: replace(reply, observations=tuple(alter(reply.observations))))


def raising(error: Exception, on: type[Operation] = ops.Allocate) -> Altered:
    """Return a small reference, raising an exception in place of an answer."""

    def answer(operation: Operation, reply: Reply) -> Reply:
        if isinstance(operation, on):
            raise error
        return reply

    return answering(answer)


def changing() -> Altered:
    """Return a backend that describes itself otherwise each time."""
    versions = itertools.count()
    return Altered(lambda description: replace(description, version=str(next(versions))))


def describing_once() -> Altered:
    """Return a backend that can describe itself only at first."""
    calls = itertools.count()

    def describe(description: Description) -> Description:
        if next(calls) > 30:
            raise RuntimeError("the device is busy")
        return description

    return Altered(describe)


def sharing_one_context() -> Altered:
    """Return a backend whose contexts are all the same one, as long as any of them is open."""
    opened: list[Context] = []

    class Shared(Passing):
        def close(self) -> Closing:
            opened.clear()
            return super().close()

    def opening(profile: DeviceProfile) -> Context:
        if not opened:
            opened.append(reference().open(profile))
        return Shared(opened[0])

    return Altered(opening=opening)


def keeping_gauges() -> Altered:
    """Return a backend that counts live bytes of all of its contexts together."""
    total = [0]

    class Counting(Passing):
        def perform(self, operation: Operation) -> Reply:
            reply = super().perform(operation)
            if isinstance(operation, ops.Allocate) and isinstance(reply.outcome, Allocated):
                total[0] += operation.size_bytes
            return reply

        def readings(self) -> Readings:
            return {**super().readings(), (Gauge.LIVE, Source.CLAIM): total[0]}

    return Altered(wrapping=Counting)


class ClosesOnce(Passing):
    """Closing it again raises, as it does where the handle is gone."""

    closed = False

    def close(self) -> Closing:
        if self.closed:
            raise ValueError("the handle is gone")
        self.closed = True
        return super().close()


class CountsReadings(Passing):
    """Its gauges count that they are read."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._reads = itertools.count()

    def readings(self) -> Readings:
        return {**super().readings(), (Gauge.RETAINED, Source.LEDGER): next(self._reads)}


class ReadsOnce(Passing):
    """Closing it again reads otherwise."""

    closed = False

    def close(self) -> Closing:
        closing = super().close()
        if self.closed:
            closing = replace(closing, readings=dict.fromkeys(closing.readings, 7))
        self.closed = True
        return closing


class ServesOnce(Passing):
    """Once closed it serves what it is asked for, and keeps it."""

    closed = False
    kept = 0

    def perform(self, operation: Operation) -> Reply:
        if self.closed:
            self.kept += 1
            return Reply(Allocated(4096))
        return super().perform(operation)

    def close(self) -> Closing:
        self.closed = True
        closing = super().close()
        return replace(closing, readings={**closing.readings, (Gauge.BLOCKS, Source.CLAIM): self.kept})


class CallsAfterClose(Passing):
    """Once closed it raises."""

    closed = False

    def perform(self, operation: Operation) -> Reply:
        if self.closed:
            raise AttributeError("'NoneType' object has no attribute 'allocate'")
        return super().perform(operation)

    def close(self) -> Closing:
        self.closed = True
        return super().close()


def without(gauge: Gauge) -> Callable[[dict[tuple[Gauge, Source], int]], Readings]:
    """Leave a gauge out."""
    return lambda readings: {key: value for key, value in readings.items() if key[0] is not gauge}


def mixed_up(readings: dict[tuple[Gauge, Source], int]) -> Readings:
    """Call the claim about blocks a ledger."""
    blocks = readings.pop((Gauge.BLOCKS, Source.CLAIM))
    return {**readings, (Gauge.BLOCKS, Source.LEDGER): blocks}


def falling(readings: dict[tuple[Gauge, Source], int]) -> Readings:
    """Count backing calls downwards."""
    return {key: 1000 - value if key[0] is Gauge.BACKING_CALLS else value for key, value in readings.items()}


def off_by_a_page(readings: dict[tuple[Gauge, Source], int]) -> Readings:
    """Let the ledger read what it did not see, once it saw anything."""
    key = (Gauge.RESERVED, Source.LEDGER)
    return {**readings, key: readings[key] + 4096 * bool(readings[key])}


def unsupported_launch(operation: Operation, reply: Reply) -> Reply:
    """Claim launches and do none."""
    return Reply(Unsupported("no kernels yet")) if isinstance(operation, ops.Launch) else reply


def unsupported_mark(operation: Operation, reply: Reply) -> Reply:
    """Know no marks."""
    return Reply(Unsupported("what is that?")) if isinstance(operation, ops.Mark) else reply


def done_for_a_block(operation: Operation, reply: Reply) -> Reply:
    """Say that an allocation is done, and not where."""
    return replace(reply, outcome=Done()) if isinstance(reply.outcome, Allocated) else reply


def allocated_for_a_free(operation: Operation, reply: Reply) -> Reply:
    """Answer a free with an address."""
    free = isinstance(operation, ops.Free) and isinstance(reply.outcome, Done)
    return replace(reply, outcome=Allocated(4096)) if free else reply


def serving_strangers(operation: Operation, reply: Reply) -> Reply:
    """Free what was never made."""
    return replace(reply, outcome=Done()) if isinstance(reply.outcome, Rejected) else reply


def freed_twice(seen: tuple[Observation, ...]) -> Iterable[Observation]:
    """Tell of every backing free twice."""
    return itertools.chain.from_iterable((each, each) if isinstance(each, BackingFreed) else (each,) for each in seen)


def never_freed(seen: tuple[Observation, ...]) -> Iterable[Observation]:
    """Tell of no backing free."""
    return (each for each in seen if not isinstance(each, BackingFreed))


def of_other_sizes(seen: tuple[Observation, ...]) -> Iterable[Observation]:
    """Tell of backing frees with a size that nobody allocated."""
    return (replace(each, size_bytes=1) if isinstance(each, BackingFreed) else each for each in seen)


def silent(seen: tuple[Observation, ...]) -> Iterable[Observation]:
    """Forget the backing ledger."""
    return (each for each in seen if not isinstance(each, BackingAllocated | BackingFreed))


def named_like_slots(seen: tuple[Observation, ...]) -> Iterable[Observation]:
    """Call a library's own event by a bare word."""
    return (replace(each, event="event") if isinstance(each, EventRecorded) else each for each in seen)


STREAMLESS = frozenset({Capability.MEMORY, Capability.STALL})
PROMISES = frozenset({Promise.TRACKS_USES, Promise.FLAT_COST, Promise.COLLECTS_AT_ONCE})


class DiesAtAFree(Passing):
    """A context whose subject is gone from the first free on, and has no gauges any more."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._fault: BackendFault | None = None

    def perform(self, operation: Operation) -> Reply:
        if self._fault is not None or isinstance(operation, ops.Free):
            self._fault = BackendFault("driver_survives_every_request", "it was killed")
            raise self._fault
        return super().perform(operation)

    def close(self) -> Closing:
        closing = super().close()
        return closing if self._fault is None else Closing()


class IsInterruptedAtAnAllocation(Passing):
    """A context whose user presses Ctrl-C while an allocation is answered."""

    def perform(self, operation: Operation) -> Reply:
        reply = super().perform(operation)
        if isinstance(operation, ops.Allocate):
            raise KeyboardInterrupt
        return reply
