"""Everything that the oracle knows of one context, and how to look it up. The model changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from quiesce.allocators.oracle.blocks import BlockState, KeptMemory
from quiesce.allocators.oracle.captures import CaptureModel, CaptureState
from quiesce.allocators.oracle.change import Evidence
from quiesce.allocators.oracle.clocks import Clock, HappensBefore, StreamState
from quiesce.allocators.oracle.failures import ArmedFailure
from quiesce.allocators.oracle.memory import MemoryModel
from quiesce.allocators.oracle.promised import FromNothing, IntactBlocks
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile, Promise
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import DEFAULT_STREAM, HandleKind, default_stream_of
from quiesce.model.operations import FailurePoint, MemoryKind, Operation, Slot
from quiesce.model.requests import is_slot


@dataclass(slots=True, eq=False)
class NodeState:
    """One node: its holds, the parents that a backward pass from it would walk, and whether one walked it already."""

    parents: tuple[NodeState, ...]
    holds: int = 1
    is_leaf: bool = False
    is_consumed: bool = False


class TapeModel:
    """Held nodes and what they lead to. Walks of the graph are asked for at ``collect`` and ``backward`` only."""

    def __init__(self) -> None:
        self.held: dict[Slot, NodeState] = {}
        self.was_used = False
        """Whether there was ever a node."""

    def apply(self, operation: Operation) -> None:
        """Enter a tape operation that was done."""
        match operation:
            case ops.Node(slot, parents):
                self.was_used = True
                above = tuple(self.held[parent] for parent in parents if parent in self.held)
                self.held[slot] = NodeState(above, is_leaf=not parents)
            case ops.Hold(slot) if slot in self.held:
                self.held[slot].holds += 1
            case ops.Drop(slot) if slot in self.held:
                self.held[slot].holds -= 1
                if not self.held[slot].holds:
                    del self.held[slot]
            case ops.Backward(slot) if slot in self.held:
                walk = [self.held[slot]]
                while walk:
                    node = walk.pop()
                    walk.extend(node.parents)
                    node.parents = ()
                    node.is_consumed = True
            case _:
                pass

    def may_refuse(self, slot: Slot) -> bool:
        """Whether a backward pass from a held node needs what an earlier pass consumed.

        A tape that keeps nothing for a second pass says so (burn-autodiff panics, PyTorch raises an error). A leaf has
        nothing to keep, and stays good for any number of passes from the nodes below it.
        """
        root = self.held[slot]
        if root.is_consumed:
            return True
        return any(node.is_consumed and not node.is_leaf for node in _walk(root.parents))

    def reachable(self) -> int:
        """Return how many nodes are held or lead to a held node's gradient."""
        return sum(1 for _ in _walk(self.held.values()))


def _walk(nodes: Iterable[NodeState]) -> Iterator[NodeState]:
    """Yield these nodes and all that they lead to, each once."""
    seen: set[int] = set()
    walk = list(nodes)
    while walk:
        node = walk.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            walk.extend(node.parents)


RUNTIME: Final = "?"
"""Stands for the parallel runtime among slots; no slot looks like it."""


@dataclass(slots=True, eq=False)
class EventState:
    """What is known of one event."""

    name: str
    device: int
    clock: Clock = field(default_factory=dict)
    certain: Clock = field(default_factory=dict)
    """What its last record certainly comes behind."""
    stream: StreamState | None = None
    """The stream that it was last recorded on."""
    capture: CaptureState | None = None
    """The capture that it was recorded in; ``clock`` is then about what that captured."""
    recorded: bool = False
    """Whether it ever was; until then waiting for it is "a functional no-op" (``cuStreamWaitEvent``)."""
    ambiguous: bool = False
    """Whether it is unknown which device's default stream it was recorded on, if on one."""


@dataclass(slots=True)
class Doubts:
    """What may be otherwise than it is taken to be.

    ``things`` were to be ended or recorded when a call below failed: they may be gone, or be as they were.
    """

    things: set[Slot] = field(default_factory=set)
    """Slots, and :data:`RUNTIME` for the parallel runtime."""
    completion: bool = False
    """Whether work of one device may have been taken for complete because another's default stream was."""
    waits: bool = False
    """Whether somebody may have made a stream wait unseen since the device was last synchronised."""
    kept: set[Gauge] = field(default_factory=set)
    """The gauges that count memory which a library may have taken for itself unseen."""


@dataclass(slots=True)
class RuntimeState:
    """The parallel runtime, and the streams of its instances."""

    initialized: bool = False
    finalized: bool = False
    instances: dict[Slot, StreamState] = field(default_factory=dict)


@dataclass(slots=True)
class ChunkSizes:
    """How much was asked of the backing allocator, for rules that compare it with later requests."""

    first: dict[tuple[Slot | None, MemoryKind, int, int], tuple[int, int]] = field(default_factory=dict)
    """By pool, kind, class and alignment: the first backing request with nothing held, and for what size."""
    smallest_bytes: dict[tuple[Slot | None, MemoryKind], int] = field(default_factory=dict)
    from_nothing: FromNothing = field(default_factory=FromNothing)


@dataclass(slots=True)
class Internal:
    """What a library made for itself, by the name that observations give it."""

    events: dict[str, EventState] = field(default_factory=dict)
    streams: dict[str, StreamState] = field(default_factory=dict)


@dataclass(slots=True)
class Asked:
    """What was asked for, served or not: the ``kinds`` of memory, and whether there was nothing yet."""

    kinds: set[MemoryKind] = field(default_factory=set)
    nothing_yet: bool = True


class Facts:
    """What is known, by slot and by name."""

    def __init__(self, description: Description, profile: DeviceProfile) -> None:
        self.description = description
        self.profile = profile
        self.counted_twice = tuple(
            (gauge, (gauge, Source.CLAIM), (gauge, Source.LEDGER))
            for gauge, sources in description.gauges.items()
            if len(sources) > 1
        )
        """The gauges that have both a claim and a ledger, and the keys of both."""
        self.sees_order = Capability.ORDER_LEDGER in description.capabilities
        """Whether every record, wait and synchronisation of a library's own is observed."""
        legacy = Capability.LEGACY_DEFAULT_STREAM in description.capabilities
        self.order = HappensBefore(legacy_default_stream=legacy)
        self.evidence = Evidence(self.order)
        ledger = Capability.BACKING_LEDGER in description.capabilities
        self.memory = MemoryModel(ledger=ledger, unit_bytes=description.alignment_bytes)
        self.intact = IntactBlocks() if Promise.REUSES_BLOCKS in description.promises else None
        self.kept = KeptMemory()
        self.chunks = ChunkSizes()
        self.captures = CaptureModel()
        self.tape = TapeModel()
        self._begin_without_things()
        self.device = 0
        self.runtime = RuntimeState()
        self.failures: dict[FailurePoint, ArmedFailure] = {}
        self.doubts = Doubts()
        self.asked = Asked()
        self.staged = False
        """Whether anything was staged: from then on a library may hold pinned buffers of its own."""
        self.default_streams = [self.order.new_stream(DEFAULT_STREAM, d) for d in range(profile.devices)]
        self._default_streams_by_name = {default_stream_of(s.device): s for s in self.default_streams}

    def _begin_without_things(self) -> None:
        """Nothing was made yet."""
        self.blocks: dict[Slot, BlockState] = {}
        self.empty_blocks: dict[Slot, range] = {}
        """Blocks that may or may not exist, and where: those of no bytes, and those whose free failed below, or whose
        pool was destroyed."""
        self.orphans: dict[Slot, set[Slot]] = {}
        """The blocks that pools were destroyed with and that were not freed since, by the name of their memory."""
        self.orphans_made = 0
        self.freed_beside_captures: list[tuple[BlockState, StreamState]] = []
        """What was freed while a stream was captured, and on which stream: a library may see to it afterwards."""
        self.streams: dict[Slot, StreamState] = {}
        self.events: dict[Slot, EventState] = {}
        self.internal = Internal()
        self.graphs: dict[Slot, CaptureState | None] = {}
        self.pools: dict[Slot, int | None] = {}
        self.pool_devices: dict[Slot, int] = {}
        """Where each pool was made: its memory is there, whichever device is current."""

    def promises(self, promise: Promise) -> bool:
        """Whether the backend made a promise."""
        return promise in self.description.promises

    def can(self, capability: Capability) -> bool:
        """Whether the backend has a capability."""
        return capability in self.description.capabilities

    def stream(self, slot: Slot | None) -> StreamState | None:
        """Return a live stream's state, the current device's default stream for None, or None where it is dead."""
        return self.default_streams[self.device] if slot is None else self.streams.get(slot)

    def launch_stream(self, operation: ops.Launch) -> StreamState | None:
        """Return the stream that a launch goes to."""
        if operation.instance is not None:
            return self.runtime.instances.get(operation.instance)
        return self.stream(operation.stream)

    def is_dead(self, stream: StreamState) -> bool:
        """Whether a stream of the sequence was destroyed."""
        return self.streams.get(stream.name) is not stream and is_slot(stream.name)

    def remaining(self, stream: StreamState, device: int) -> StreamState:
        """Return the stream in whose order memory can be freed: ``stream``, or where it is gone the default one."""
        return self.default_streams[device] if self.is_dead(stream) else stream

    def handles(self, kind: HandleKind) -> int:
        """Return how many handles of a kind the sequence owns."""
        match kind:
            case HandleKind.STREAM:
                return len(self.streams)
            case HandleKind.EVENT:
                return len(self.events)
            case HandleKind.GRAPH:
                return len(self.graphs)
            case HandleKind.INSTANCE:
                return len(self.runtime.instances)

    def observed_event(self, name: str) -> EventState:
        """Return the state of an event of the sequence, or of one that a library made for itself."""
        if name in self.events and self.events[name].capture is None:
            return self.events[name]
        return self.internal.events.setdefault(name, EventState(name, self.device))

    def is_ambiguous(self, name: str) -> bool:
        """Whether an observation's stream may be any of several: the default one of a device that it does not name."""
        return name == DEFAULT_STREAM and len(self.default_streams) > 1

    def observed_streams(self, name: str) -> Iterable[StreamState]:
        """Return the streams that an observation can mean by ``name``.

        The default stream's shortest name does not say of which device it is. A name that is no slot is a library's
        own stream.
        """
        if name == DEFAULT_STREAM:
            return self.default_streams
        if name in self._default_streams_by_name:
            return (self._default_streams_by_name[name],)
        if name in self.streams:
            return (self.streams[name],)
        for state in self.runtime.instances.values():
            if state.name == name:
                return (state,)
        if is_slot(name):
            return ()
        if name not in self.internal.streams:
            self.internal.streams[name] = self.order.new_stream(name, self.device, nonblocking=True)
        return (self.internal.streams[name],)

    def is_any_stream_busy(self) -> bool:
        """Whether some stream has work that the host does not know to be complete."""
        return self.order.is_busy
