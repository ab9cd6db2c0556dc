"""The observations that a driver's reply carries: ``{"seen": "backing-allocated", "address": "0x…", "size": N}``.

``seen`` is the observation's class in kebab case. The other keys are its fields, sizes without ``_bytes``;
fields with a default may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from quiesce import observations as seen
from quiesce.backends.command.objects import Fields, WireError, preview
from quiesce.observations import DEFAULT_STREAM, HandleKind, Observation
from quiesce.operations import MemoryKind


def _kind(fields: Fields) -> MemoryKind:
    return fields.member("kind", MemoryKind, MemoryKind.DEVICE)


def _device(fields: Fields) -> int:
    return fields.whole("device", default=0)


def _copy(fields: Fields) -> Observation:
    source, destination = fields.address("source_address"), fields.address("destination_address")
    return seen.CopyEnqueued(source, destination, fields.whole("size"), fields.text("stream", DEFAULT_STREAM))


def _waited(fields: Fields) -> Observation:
    event, waiter = fields.text("event"), fields.optional_text("waiter")
    return seen.EventWaited(event, waiter, fields.flag("stream_alive", default=True))


READERS: Final[Mapping[str, Callable[[Fields], Observation]]] = {
    "backing-allocated": lambda f: seen.BackingAllocated(f.address("address"), f.whole("size"), _kind(f), _device(f)),
    "backing-freed": lambda f: seen.BackingFreed(f.address("address"), f.whole("size"), _kind(f), _device(f)),
    "backing-refused": lambda f: seen.BackingRefused(f.whole("size"), _kind(f), _device(f)),
    "copy-enqueued": _copy,
    "event-recorded": lambda f: seen.EventRecorded(f.text("event"), f.text("stream")),
    "event-waited": _waited,
    "event-completed": lambda f: seen.EventCompleted(f.text("event")),
    "stream-synchronized": lambda f: seen.StreamSynchronized(f.text("stream")),
    "device-synchronized": lambda f: seen.DeviceSynchronized(_device(f)),
    "handle-created": lambda f: seen.HandleCreated(f.member("kind", HandleKind), f.text("name")),
    "handle-destroyed": lambda f: seen.HandleDestroyed(f.member("kind", HandleKind), f.text("name")),
}
"""What reads each kind of observation, by its name on the wire."""


def read_observation(value: object, index: int) -> Observation:
    """Return the observation at ``index`` of a reply. Raises :class:`WireError`."""
    fields = Fields(value, f"observation {index}")
    name = fields.text("seen")
    if name not in READERS:
        raise WireError(f"observation {index}: {preview(name)} is not one of {', '.join(READERS)}")
    observation = READERS[name](fields)
    fields.finish()
    return observation
