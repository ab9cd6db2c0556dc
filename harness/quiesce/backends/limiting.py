"""A wrapping backend that refuses what goes beyond the profile's capacity.

The C heap has no capacity of its own: Linux promises more memory than there is. With this around it, out of memory
is an answer that a case can ask for, on the very request that asks for too much. Sizes in bytes.
"""

from __future__ import annotations

from dataclasses import replace

from quiesce.backend import Backend, Capability, Closing, Context, Description, DeviceProfile, Promise, Reply
from quiesce.gauges import Readings
from quiesce.observations import UpstreamRefused
from quiesce.operations import Allocate, Free, MemoryKind, Operation, Slot
from quiesce.outcomes import Allocated, Done, OutOfMemory


class Limiting:
    """``upstream``, within ``DeviceProfile.capacity_bytes`` of device memory, counted as it was asked for."""

    def __init__(self, upstream: Backend) -> None:
        self._upstream = upstream

    def describe(self) -> Description:
        """Say what upstream says, with a capacity that is honoured. Raises what upstream raises."""
        upstream = self._upstream.describe()
        return replace(
            upstream,
            capabilities=upstream.capabilities | {Capability.CAPACITY},
            promises=upstream.promises | {Promise.CAPACITY_LIMIT},
        )

    def open(self, profile: DeviceProfile) -> Context:
        """Open upstream and limit it. Raises what upstream raises."""
        observed = Capability.UPSTREAM_LEDGER in self._upstream.describe().capabilities
        return LimitingContext(self._upstream.open(profile), profile.capacity_bytes, observed=observed)


class LimitingContext:
    """An opened backend behind a limit. ``observed``: a refusal is shown in the reply, as upstream's own are."""

    def __init__(self, upstream: Context, capacity_bytes: int, *, observed: bool) -> None:
        self._upstream = upstream
        self._capacity_bytes = capacity_bytes
        self._observed = observed
        self._held: dict[Slot, int] = {}
        self._held_bytes = 0

    def perform(self, operation: Operation) -> Reply:
        """Refuse an allocation that does not fit; leave everything else to upstream."""
        if isinstance(operation, Allocate) and operation.kind is MemoryKind.DEVICE:
            size_bytes = operation.size_bytes
            if self._held_bytes + size_bytes > self._capacity_bytes:
                return Reply(OutOfMemory(), (UpstreamRefused(size_bytes),) if self._observed else ())
            reply = self._upstream.perform(operation)
            if isinstance(reply.outcome, Allocated):
                self._held[operation.slot] = size_bytes
                self._held_bytes += size_bytes
            return reply
        reply = self._upstream.perform(operation)
        if isinstance(operation, Free) and isinstance(reply.outcome, Done):
            self._held_bytes -= self._held.pop(operation.slot, 0)
        return reply

    def readings(self) -> Readings:
        """Read upstream's gauges."""
        return self._upstream.readings()

    def close(self) -> Closing:
        """Close upstream."""
        return self._upstream.close()
