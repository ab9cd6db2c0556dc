"""Observations: what was *seen* while an operation ran, by a ledger that is not the allocator under test.

The reference emits them, the simulated runtime's ledger holds them, and a driver's replies may carry them.
Streams and events that the sequence created are named by their slot; those that a library made for itself carry
any name that is not a slot, such as ``internal:7``. The default stream is ``""``; on a machine with several devices
:func:`default_stream_of` says of which device it is.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from quiesce.model.operations import MemoryKind

DEFAULT_STREAM = ""
"""The name of the default stream in observations: of any device, where there are several."""


def default_stream_of(device: int) -> str:
    """Return the name of one device's default stream in observations."""
    return f"device:{device}"


class HandleKind(enum.StrEnum):
    """The kinds of handle that a runtime hands out."""

    STREAM = "stream"
    EVENT = "event"
    GRAPH = "graph"
    INSTANCE = "instance"


@dataclass(frozen=True, slots=True)
class BackingAllocated:
    """``size_bytes`` were taken from the backing allocator (the device, the driver, the system) at ``address``."""

    address: int
    size_bytes: int
    kind: MemoryKind = MemoryKind.DEVICE
    device: int = 0


@dataclass(frozen=True, slots=True)
class BackingFreed:
    """The backing allocation at ``address`` was given back."""

    address: int
    size_bytes: int
    kind: MemoryKind = MemoryKind.DEVICE
    device: int = 0


@dataclass(frozen=True, slots=True)
class BackingRefused:
    """The backing allocator refused a request of ``size_bytes``."""

    size_bytes: int
    kind: MemoryKind = MemoryKind.DEVICE
    device: int = 0


@dataclass(frozen=True, slots=True)
class CopyEnqueued:
    """A copy was enqueued on ``stream``; it reads ``source_address`` and writes ``destination_address``."""

    source_address: int
    destination_address: int
    size_bytes: int
    stream: str = DEFAULT_STREAM


@dataclass(frozen=True, slots=True)
class EventRecorded:
    """``event`` was recorded behind the work of ``stream``."""

    event: str
    stream: str


@dataclass(frozen=True, slots=True)
class EventWaited:
    """``waiter`` (a stream, or None for the host) waited for ``event``.

    ``stream_alive`` says whether the stream that the event was last recorded on still existed.
    """

    event: str
    waiter: str | None
    stream_alive: bool = True


@dataclass(frozen=True, slots=True)
class EventCompleted:
    """The host learned, by asking, that ``event`` is complete."""

    event: str


@dataclass(frozen=True, slots=True)
class StreamSynchronized:
    """The host blocked until ``stream`` was idle."""

    stream: str


@dataclass(frozen=True, slots=True)
class DeviceSynchronized:
    """The host blocked until every stream of ``device`` was idle."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class HandleCreated:
    """A handle was created."""

    kind: HandleKind
    name: str


@dataclass(frozen=True, slots=True)
class HandleDestroyed:
    """A handle was destroyed."""

    kind: HandleKind
    name: str


Observation: TypeAlias = (
    BackingAllocated
    | BackingFreed
    | BackingRefused
    | CopyEnqueued
    | EventRecorded
    | EventWaited
    | EventCompleted
    | StreamSynchronized
    | DeviceSynchronized
    | HandleCreated
    | HandleDestroyed
)
