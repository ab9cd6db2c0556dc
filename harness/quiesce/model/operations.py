"""Operations: the requests a backend can be asked to perform.

Every operation is one frozen value of the closed union :data:`Operation`. Blocks, streams, events, pools,
graphs, instances and nodes are named by *slot*, never by address, so that a sequence replays on any backend
and can be written down as a case file. Sizes and alignments are in bytes. Nothing here performs anything.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

Slot: TypeAlias = str
"""A name that a sequence gives to a thing: a letter or ``_``, then letters, digits, ``_``, an optional ``[3]``."""


class MemoryKind(enum.StrEnum):
    """Where a block lives; the four kinds of the CUDA and HIP memory models."""

    DEVICE = "device"
    PINNED = "pinned"
    PAGEABLE = "pageable"
    MANAGED = "managed"


class CaptureMode(enum.StrEnum):
    """How far a stream capture forbids unsafe calls (``cudaStreamCaptureMode``, ``hipStreamCaptureMode``)."""

    GLOBAL = "global"
    THREAD_LOCAL = "thread-local"
    RELAXED = "relaxed"


class FailurePoint(enum.StrEnum):
    """The kinds of call below the allocator under test that can be made to fail."""

    BACKING = "backing"
    BOOKKEEPER = "bookkeeper"


class InjectedError(enum.StrEnum):
    """What an injected failure looks like to the allocator that meets it."""

    OUT_OF_MEMORY = "out-of-memory"
    FOREIGN = "foreign-error"


@dataclass(frozen=True, slots=True)
class Allocate:
    """Ask for ``size_bytes`` of ``kind`` memory and call it ``slot``.

    ``alignment_bytes`` None leaves the backend's own alignment; ``stream`` None is the default stream;
    ``pool`` None is the backend's default allocator for that kind.
    """

    slot: Slot
    size_bytes: int
    kind: MemoryKind = MemoryKind.DEVICE
    alignment_bytes: int | None = None
    stream: Slot | None = None
    pool: Slot | None = None


@dataclass(frozen=True, slots=True)
class Free:
    """Give a block back, ordered on ``stream`` (None: the stream it was allocated on)."""

    slot: Slot
    stream: Slot | None = None


@dataclass(frozen=True, slots=True)
class Trim:
    """Release unused cached memory: ``kind`` of the default allocators, or of one ``pool``."""

    kind: MemoryKind = MemoryKind.DEVICE
    pool: Slot | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy ``size_bytes`` (None: the smaller block) from ``source`` to ``destination``, ordered on ``stream``."""

    source: Slot
    destination: Slot
    size_bytes: int | None = None
    stream: Slot | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Bring host block ``source`` to a new device block ``slot`` the way a library does (``cupy.asarray``)."""

    slot: Slot
    source: Slot
    stream: Slot | None = None


@dataclass(frozen=True, slots=True)
class Fill:
    """Set every byte of a block to ``value`` (0-255), ordered on ``stream``."""

    slot: Slot
    value: int
    stream: Slot | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch a kernel whose arguments take ``argument_bytes`` and which reads and writes the named blocks.

    It goes to ``stream``, or to the stream of ``instance`` through the launch protocol of a parallel runtime.
    """

    reads: tuple[Slot, ...] = ()
    writes: tuple[Slot, ...] = ()
    argument_bytes: int = 0
    stream: Slot | None = None
    instance: Slot | None = None


@dataclass(frozen=True, slots=True)
class CreatePool:
    """Create an allocator of its own above the same backing allocator; ``limit_bytes`` caps what it may hold."""

    slot: Slot
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DestroyPool:
    """Destroy a pool; everything it holds is released."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class CreateStream:
    """Create a stream; a ``nonblocking`` one does not synchronise with the legacy default stream."""

    slot: Slot
    nonblocking: bool = False


@dataclass(frozen=True, slots=True)
class DestroyStream:
    """Destroy a stream; work in flight completes first, without blocking the caller."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class SynchronizeStream:
    """Block until everything enqueued on the stream (None: the default stream) is complete; this ends a stall."""

    slot: Slot | None = None


@dataclass(frozen=True, slots=True)
class QueryStream:
    """Ask whether the stream is idle: done, or rejected ``not-ready``."""

    slot: Slot | None = None


@dataclass(frozen=True, slots=True)
class CreateEvent:
    """Create an event."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class DestroyEvent:
    """Destroy an event; legal while work waits for it."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Record an event behind the work enqueued on ``stream`` so far."""

    slot: Slot
    stream: Slot | None = None


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """Make later work on ``stream`` wait for the event's last record; the caller does not block."""

    slot: Slot
    stream: Slot | None = None


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """Ask whether the event's last record is complete: done, or rejected ``not-ready``."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class SynchronizeEvent:
    """Block until the event's last record is complete; this ends the stalls it depends on."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class SynchronizeDevice:
    """Block until all work on the current device is complete; this ends every stall."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Hold a stream: later work stays pending until it is released or a synchronisation forces it."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Release:
    """End a stall."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class BeginCapture:
    """Begin capturing the work of ``stream`` into a graph instead of running it."""

    stream: Slot
    mode: CaptureMode = CaptureMode.GLOBAL


@dataclass(frozen=True, slots=True)
class EndCapture:
    """End the capture of ``stream`` and call the graph ``slot``."""

    slot: Slot
    stream: Slot


@dataclass(frozen=True, slots=True)
class LaunchGraph:
    """Run a captured graph on ``stream``."""

    slot: Slot
    stream: Slot | None = None


@dataclass(frozen=True, slots=True)
class DestroyGraph:
    """Destroy a graph."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class SelectDevice:
    """Make device ``ordinal`` current for what follows."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class Initialize:
    """Initialise the parallel runtime (``Kokkos::initialize``)."""


@dataclass(frozen=True, slots=True)
class Finalize:
    """Finalise the parallel runtime; it must own nothing afterwards."""


@dataclass(frozen=True, slots=True)
class CreateInstance:
    """Create an execution-space instance on ``stream``, or (None) on a stream that it owns."""

    slot: Slot
    stream: Slot | None = None


@dataclass(frozen=True, slots=True)
class DestroyInstance:
    """Finalise an instance: it fences its work and gives up what it owns."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Partition:
    """Partition the default instance (or ``instance``) into new instances, one for each slot."""

    slots: tuple[Slot, ...]
    instance: Slot | None = None


@dataclass(frozen=True, slots=True)
class CreatePolicy:
    """Create and drop an execution policy on the default instance or on ``instance``."""

    instance: Slot | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """Add a node to the autodiff tape below its ``parents``; the sequence holds it once."""

    slot: Slot
    parents: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold a node once more (clone the tensor)."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Drop:
    """Give one hold on a node up (drop the tensor)."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Backward:
    """Run the backward pass from a node; it consumes the part of the tape that leads to it."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Collect:
    """Free what the tape keeps and nobody can reach."""


@dataclass(frozen=True, slots=True)
class InjectFailure:
    """Make the ``nth`` call (1: the next) below the allocator fail once with ``error``."""

    point: FailurePoint
    nth: int = 1
    error: InjectedError = InjectedError.OUT_OF_MEMORY


@dataclass(frozen=True, slots=True)
class Mark:
    """Remember the gauges under ``name`` so that a later expectation can refer to them."""

    name: str


Operation: TypeAlias = (
    Allocate
    | Free
    | Trim
    | Copy
    | Stage
    | Fill
    | Launch
    | CreatePool
    | DestroyPool
    | CreateStream
    | DestroyStream
    | SynchronizeStream
    | QueryStream
    | CreateEvent
    | DestroyEvent
    | RecordEvent
    | WaitEvent
    | QueryEvent
    | SynchronizeEvent
    | SynchronizeDevice
    | Stall
    | Release
    | BeginCapture
    | EndCapture
    | LaunchGraph
    | DestroyGraph
    | SelectDevice
    | Initialize
    | Finalize
    | CreateInstance
    | DestroyInstance
    | Partition
    | CreatePolicy
    | Node
    | Hold
    | Drop
    | Backward
    | Collect
    | InjectFailure
    | Mark
)
