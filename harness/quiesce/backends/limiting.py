"""A wrapping backend that refuses what goes beyond the profile's capacity.

The C heap has no capacity of its own: Linux promises more memory than there is. With this around it, out of memory
is an answer that a case can ask for, on the very request that asks for too much. Sizes in bytes.
"""

from __future__ import annotations

from dataclasses import replace

from quiesce.backend import Backend, Capability, Closing, Context, Description, DeviceProfile, Promise, Reply
from quiesce.gauges import Readings
from quiesce.observations import BackingRefused
from quiesce.operations import Allocate, Free, MemoryKind, Operation, Slot
from quiesce.outcomes import Allocated, Done, OutOfMemory


class Limiting:
    """``wrapped``, within ``DeviceProfile.capacity_bytes`` of device memory, counted as it was asked for."""

    def __init__(self, wrapped: Backend) -> None:
        self._wrapped = wrapped

    def describe(self) -> Description:
        """Say what the wrapped backend says, with a capacity that is honoured. Raises what it raises."""
        backing = self._wrapped.describe()
        return replace(
            backing,
            capabilities=backing.capabilities | {Capability.CAPACITY},
            promises=backing.promises | {Promise.CAPACITY_LIMIT},
        )

    def open(self, profile: DeviceProfile) -> Context:
        """Open the wrapped backend and limit it. Raises what the wrapped backend raises."""
        observed = Capability.BACKING_LEDGER in self._wrapped.describe().capabilities
        return LimitingContext(self._wrapped.open(profile), profile.capacity_bytes, observed=observed)


class LimitingContext:
    """An opened backend within a limit. ``observed``: a refusal is shown in the reply, as in the backend's ledger."""

    def __init__(self, wrapped: Context, capacity_bytes: int, *, observed: bool) -> None:
        self._wrapped = wrapped
        self._capacity_bytes = capacity_bytes
        self._observed = observed
        self._held: dict[Slot, int] = {}
        self._held_bytes = 0

    def perform(self, operation: Operation) -> Reply:
        """Refuse an allocation that does not fit; leave everything else to the wrapped backend."""
        if isinstance(operation, Allocate) and operation.kind is MemoryKind.DEVICE:
            size_bytes = operation.size_bytes
            if self._held_bytes + size_bytes > self._capacity_bytes:
                return Reply(OutOfMemory(), (BackingRefused(size_bytes),) if self._observed else ())
            reply = self._wrapped.perform(operation)
            if isinstance(reply.outcome, Allocated):
                self._held[operation.slot] = size_bytes
                self._held_bytes += size_bytes
            return reply
        reply = self._wrapped.perform(operation)
        if isinstance(operation, Free) and isinstance(reply.outcome, Done):
            self._held_bytes -= self._held.pop(operation.slot, 0)
        return reply

    def readings(self) -> Readings:
        """Read the wrapped backend's gauges."""
        return self._wrapped.readings()

    def close(self) -> Closing:
        """Close the wrapped backend."""
        return self._wrapped.close()
