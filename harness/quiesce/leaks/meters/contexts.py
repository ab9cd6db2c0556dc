"""The backends' contexts that tested code opened: which are open, and what each of them holds."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from quiesce.allocators.cases import ends_of, makes_of
from quiesce.leaks.owners import Frame, Owners, frame_text
from quiesce.leaks.quantities import CONTEXTS, BaseMeter, Meter, Quantity, Surroundings
from quiesce.model.backend import Backend, BackendFault, Capability, Closing, Context, Description, DeviceProfile, Reply
from quiesce.model.gauges import Gauge, Readings, best_reading
from quiesce.model.operations import MemoryKind, Operation, SynchronizeDevice, Trim

OPEN: Final = Quantity(CONTEXTS, "open contexts", "contexts")

_HELD: Final[Mapping[Gauge, Quantity]] = {
    gauge: Quantity(CONTEXTS, f"'{gauge}' of open contexts", "bytes" if gauge.in_bytes else "things")
    for gauge in (
        Gauge.LIVE,
        Gauge.PINNED,
        Gauge.RESERVED,
        Gauge.STREAMS,
        Gauge.EVENTS,
        Gauge.GRAPHS,
        Gauge.INSTANCES,
        Gauge.NODES,
        Gauge.BLOCKS,
        Gauge.RETAINED,
    )
}

_SETTLING: Final = (
    (Capability.STREAMS, SynchronizeDevice()),
    (Capability.POOL, Trim()),
    (Capability.PINNED, Trim(MemoryKind.PINNED)),
)


class WatchedContext:
    """A context that its meter knows until it is closed; it answers like the context itself."""

    def __init__(self, context: Context, description: Description, meter: ContextMeter, origin: Frame) -> None:
        self._context = context
        self._meter = meter
        self.description = description
        self.origin = origin
        self.origins: dict[str, Frame] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def perform(self, operation: Operation) -> Reply:
        """Perform one operation, and remember where things were asked for."""
        for slot in ends_of(operation):
            self.origins.pop(slot, None)
        for making in makes_of(operation):
            self.origins[making.slot] = self._meter.caller()
        return self._context.perform(operation)

    def readings(self) -> Readings:
        """Read every gauge."""
        return self._context.readings()

    def close(self) -> Closing:
        """Release everything; the meter forgets the context."""
        self._meter.forget(self)
        return self._context.close()

    def settle(self) -> None:
        """Wait for the device and give back what is merely cached, where the context can."""
        for capability, operation in _SETTLING:
            if capability in self.description.capabilities:
                self._context.perform(operation)


class WatchedBackend:
    """A backend whose contexts a meter knows; it answers like the backend itself."""

    def __init__(self, backend: Backend, meter: ContextMeter) -> None:
        self._backend = backend
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def describe(self) -> Description:
        """Say what the backend can do here."""
        return self._backend.describe()

    def open(self, profile: DeviceProfile) -> Context:
        """Open a context that is watched until it is closed."""
        return self._meter.open(self._backend, profile)


class ContextMeter(BaseMeter):
    """Counts the contexts that are open, and adds up what they hold."""

    family = CONTEXTS

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._open: dict[int, WatchedContext] = {}
        self._known: frozenset[int] = frozenset()

    @classmethod
    def here(cls, surroundings: Surroundings) -> Sequence[Meter]:
        """Return the one that what runs the tests hands backends to."""
        return (cls(surroundings.owners),)

    def watch(self, backend: Backend) -> Backend:
        """Return the backend such that what it opens is watched."""
        return WatchedBackend(backend, self)

    def open(self, backend: Backend, profile: DeviceProfile) -> WatchedContext:
        """Open a context and watch it."""
        context = WatchedContext(backend.open(profile), backend.describe(), self, self.caller())
        self._open[id(context)] = context
        return context

    def forget(self, context: WatchedContext) -> None:
        """Watch a context no longer."""
        self._open.pop(id(context), None)

    def caller(self) -> Frame:
        """Return the file and line of the tested code that is asking for something."""
        frame = sys._getframe(1)
        while frame.f_back is not None and not self._owners.is_tested(frame.f_code.co_filename):
            frame = frame.f_back
        return frame.f_code.co_filename, frame.f_lineno

    def settle(self) -> None:
        """Settle every open context; a dead one stays as it is."""
        for context in list(self._open.values()):
            try:
                context.settle()
            except BackendFault:
                continue

    def read(self) -> Mapping[Quantity, int]:
        """Count, and add up each gauge that any of them reads."""
        counted = {OPEN: len(self._open)}
        for context in self._open.values():
            try:
                readings = context.readings()
            except BackendFault:
                continue
            for gauge, quantity in _HELD.items():
                value = best_reading(readings, gauge)
                if value is not None:
                    counted[quantity] = counted.get(quantity, 0) + value
        return counted

    def observe(self) -> None:
        """Remember which are open, and what was made in them so far."""
        self._known = frozenset(self._open)
        for context in self._open.values():
            context.origins.clear()

    def close_new(self) -> None:
        """Close what was opened since :meth:`observe`, so that a leak takes nothing away from later tests."""
        for key in [key for key in self._open if key not in self._known]:
            try:
                self._open[key].close()
            except BackendFault:
                continue

    def origin(self, quantity: Quantity) -> str:
        """Say where the first new context was opened, or the first thing was made that is still there."""
        return next(iter(self._origins(quantity)), "")

    def evidence(self, quantity: Quantity) -> str:
        """Say where all of that was opened or made."""
        return "\n".join(dict.fromkeys(self._origins(quantity)))

    def _origins(self, quantity: Quantity) -> list[str]:
        if quantity == OPEN:
            frames = [context.origin for key, context in self._open.items() if key not in self._known]
        else:
            frames = [origin for context in self._open.values() for origin in context.origins.values()]
        return list(map(frame_text, frames))
