"""The simulated backend: the simulated CUDA or HIP runtime, driven operation by operation in this process.

Memory is allocated and freed as ``cudaMalloc`` and ``cudaFree`` do: nothing is cached, and a free waits for the device.
What the runtime did is read from its ledger, not from what it answered.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.model import operations as ops
from quiesce.model.backend import (
    Backend,
    Capability,
    Closing,
    Context,
    Description,
    DeviceProfile,
    Flavour,
    Promise,
    Reply,
)
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import Observation
from quiesce.model.operations import CaptureMode, MemoryKind, Operation, Slot
from quiesce.model.outcomes import (
    ERROR_CODES,
    ILLEGAL_STATE,
    INVALID_HANDLE,
    INVALID_VALUE,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
    Unsupported,
)
from quiesce.model.requests import SIZE_BYTES_MAX
from quiesce.simulator.runtime import (
    Machine,
    MachineSettings,
    Simulated,
    Thing,
    build_library,
    device_options,
    is_library_built,
    observations_of,
    require_addresses,
)

OUT_OF_MEMORY: Final = 2
_CODES: Final = {
    **{number: name for name, number in ERROR_CODES.items() if number is not None},
    903: ILLEGAL_STATE,  # a capture that is ended on another stream than it began on: the vocabulary has no word for it
}


def code_of(status: int) -> str:
    """Return the word for an error."""
    return _CODES.get(status, f"status-{status}")


def outcome_of(status: int) -> Outcome:
    """Return what a call that answered ``status`` came to."""
    if status == 0:
        return Done()
    return OutOfMemory() if status == OUT_OF_MEMORY else Rejected(code_of(status))


_VERSIONS: Final = {Flavour.CUDA: 12, Flavour.HIP: 7}
_MODES: Final = {CaptureMode.GLOBAL: 0, CaptureMode.THREAD_LOCAL: 1, CaptureMode.RELAXED: 2}
_DESTROYS: Final = {Thing.GRAPH_EXEC: "GraphExecDestroy", Thing.EVENT: "EventDestroy", Thing.STREAM: "StreamDestroy"}
_LEDGER: Final = frozenset({Source.LEDGER})
_CLAIM: Final = frozenset({Source.CLAIM})
_GUARANTEED_ALIGNMENT_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class Block:
    """What a slot owns."""

    address: int
    size_bytes: int
    kind: MemoryKind


class SimulatedContext:
    """An opened machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._blocks: dict[Slot, Block] = {}
        self._handles: dict[tuple[Thing, Slot], int] = {}
        self._names: dict[int, Slot] = {}
        self._stream_serials: dict[Slot, int] = {}
        self._live_bytes = self._live_blocks = 0  # a block of no bytes is none
        self._closing: Closing | None = None

    def perform(self, operation: Operation) -> Reply:
        """Perform one operation."""
        if self._closing is not None:
            return Reply(Rejected(ILLEGAL_STATE))
        return Reply(self._answer(operation), self._observe())

    def _observe(self) -> tuple[Observation, ...]:
        return tuple(seen for record in self._machine.news() for seen in observations_of(record, self._names))

    def _answer(self, operation: Operation) -> Outcome:
        match operation:
            case ops.Allocate():
                return self._allocate(operation)
            case ops.Free(slot):
                return self._free(slot)
            case ops.Copy():
                return self._copy(operation)
            case ops.Fill(slot, value, stream):
                return self._fill(slot, value, stream)
            case ops.Launch(instance=None):
                return self._launch(operation)
            case ops.SelectDevice(ordinal):
                return Done() if not self._machine.call("SetDevice", ordinal) else Rejected(INVALID_VALUE)
            case ops.SynchronizeDevice():
                return outcome_of(self._machine.call("DeviceSynchronize"))
            case ops.Mark() | ops.Trim(pool=None):  # nothing is cached
                return Done()
            case ops.BeginCapture() | ops.EndCapture() | ops.LaunchGraph() | ops.DestroyGraph():
                return self._capture(operation)
        return self._order(operation)

    # -- memory ----------------------------------------------------------------------------------------------------

    def _allocate(self, request: ops.Allocate) -> Outcome:
        if request.pool is not None:
            return Unsupported("the runtime itself has no pools that a sequence can name")
        if (request.alignment_bytes or 1) > _GUARANTEED_ALIGNMENT_BYTES:
            return Unsupported(f"the runtime aligns to {_GUARANTEED_ALIGNMENT_BYTES} bytes and no further")
        if request.slot in self._blocks:
            return Rejected(INVALID_VALUE)
        if request.stream is not None and (Thing.STREAM, request.stream) not in self._handles:
            return Rejected(INVALID_HANDLE)
        if request.size_bytes > SIZE_BYTES_MAX:
            return OutOfMemory()
        made, size = ctypes.c_void_p(), ctypes.c_size_t(request.size_bytes)
        match request.kind:
            case MemoryKind.DEVICE:
                status = self._machine.call("Malloc", ctypes.byref(made), size)
            case MemoryKind.MANAGED:  # the runtime refuses to manage no bytes
                status = self._machine.call("MallocManaged", ctypes.byref(made), size, 1) if request.size_bytes else 0
            case MemoryKind.PINNED:
                status = self._unhindered("HostAlloc", ctypes.byref(made), size, 0)
            case MemoryKind.PAGEABLE:
                return Unsupported("pageable memory is the host's own")
        if status:
            return outcome_of(status)
        self._blocks[request.slot] = Block(made.value or 0, request.size_bytes, request.kind)
        self._live_bytes += request.size_bytes
        self._live_blocks += request.size_bytes > 0
        return Allocated(made.value or 0)

    def _unhindered(self, function: str, *arguments: object) -> int:
        """Call with the thread's capture mode relaxed, as libraries do around what they do for themselves."""
        mode = ctypes.c_int(_MODES[CaptureMode.RELAXED])
        self._machine.call("ThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        status = self._machine.call(function, *arguments)
        self._machine.call("ThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        return status

    def _free(self, slot: Slot) -> Outcome:
        block = self._blocks.get(slot)
        if block is None:
            return Rejected(INVALID_VALUE)
        address = ctypes.c_void_p(block.address)
        pinned = block.kind is MemoryKind.PINNED
        outcome = outcome_of(self._unhindered("FreeHost", address) if pinned else self._machine.call("Free", address))
        if isinstance(outcome, Done):
            del self._blocks[slot]
            self._live_bytes -= block.size_bytes
            self._live_blocks -= block.size_bytes > 0
        return outcome

    def _copy(self, request: ops.Copy) -> Outcome:
        if request.source not in self._blocks or request.destination not in self._blocks:
            return Rejected(INVALID_VALUE)
        source, destination = self._blocks[request.source], self._blocks[request.destination]
        smaller = min(source.size_bytes, destination.size_bytes)
        size = smaller if request.size_bytes is None else request.size_bytes
        stream = self._stream(request.stream)
        if size > smaller:
            return Rejected(INVALID_VALUE)
        if stream is None:
            return Rejected(INVALID_HANDLE)
        addresses = ctypes.c_void_p(destination.address), ctypes.c_void_p(source.address)
        return outcome_of(self._machine.call("MemcpyAsync", *addresses, ctypes.c_size_t(size), 4, stream))

    def _fill(self, slot: Slot, value: int, stream_slot: Slot | None) -> Outcome:
        stream = self._stream(stream_slot)
        if slot not in self._blocks:
            return Rejected(INVALID_VALUE)
        if stream is None:
            return Rejected(INVALID_HANDLE)
        block = self._blocks[slot]
        size = ctypes.c_size_t(block.size_bytes)
        return outcome_of(self._machine.call("MemsetAsync", ctypes.c_void_p(block.address), value, size, stream))

    def _launch(self, request: ops.Launch) -> Outcome:
        slots, stream = (*request.reads, *request.writes), self._stream(request.stream)
        if any(slot not in self._blocks for slot in slots):
            return Rejected(INVALID_VALUE)
        if stream is None:
            return Rejected(INVALID_HANDLE)
        blocks = [self._blocks[slot] for slot in slots]
        count = len(blocks)
        addresses = (ctypes.c_uint64 * count)(*(block.address for block in blocks))
        sizes = (ctypes.c_uint64 * count)(*(block.size_bytes for block in blocks))
        writes = bytes(len(request.reads)) + b"\1" * len(request.writes)
        return outcome_of(self._machine.control("launch", stream, count, addresses, sizes, writes))

    # -- order -----------------------------------------------------------------------------------------------------

    def _stream(self, slot: Slot | None) -> ctypes.c_void_p | None:
        """Return a stream's handle, 0 (the legacy default stream) for no slot, or None for a slot that names none."""
        return ctypes.c_void_p(0) if slot is None else self._find(Thing.STREAM, slot)

    def _find(self, thing: Thing, slot: Slot) -> ctypes.c_void_p | None:
        handle = self._handles.get((thing, slot))
        return None if handle is None else ctypes.c_void_p(handle)

    def _order(self, operation: Operation) -> Outcome:
        match operation:
            case ops.CreateStream(slot, nonblocking):
                return self._create(Thing.STREAM, slot, "StreamCreateWithFlags", int(nonblocking))
            case ops.CreateEvent(slot):
                return self._create(Thing.EVENT, slot, "EventCreateWithFlags", 0)
            case ops.DestroyStream(slot):
                return self._destroy(Thing.STREAM, slot, "StreamDestroy")
            case ops.DestroyEvent(slot):
                return self._destroy(Thing.EVENT, slot, "EventDestroy")
            case ops.SynchronizeStream(slot):
                return self._ask("StreamSynchronize", self._stream(slot))
            case ops.QueryStream(slot):
                return self._ask("StreamQuery", self._stream(slot))
            case ops.QueryEvent(slot):
                return self._ask("EventQuery", self._find(Thing.EVENT, slot))
            case ops.SynchronizeEvent(slot):
                return self._ask("EventSynchronize", self._find(Thing.EVENT, slot))
            case ops.RecordEvent(slot, stream):
                return self._ask("EventRecord", self._find(Thing.EVENT, slot), self._stream(stream))
            case ops.WaitEvent(slot, stream):
                return self._ask("StreamWaitEvent", self._stream(stream), self._find(Thing.EVENT, slot), 0)
            case ops.Stall(slot):
                handle = self._stream(slot)
                return (
                    Rejected(INVALID_HANDLE) if handle is None else outcome_of(self._machine.control("stall", handle))
                )
            case ops.Release(slot):
                return self._release(slot)
        return Unsupported("the runtime itself has no pools, instances or tapes")

    def _release(self, slot: Slot) -> Outcome:
        """Release a stream by its serial: it may have been destroyed meanwhile."""
        serial = self._stream_serials.get(slot)
        if serial is None:
            return Rejected(INVALID_HANDLE)
        return outcome_of(self._machine.control("release", ctypes.c_uint64(serial)))

    def _ask(self, function: str, *arguments: ctypes.c_void_p | int | None) -> Outcome:
        if any(argument is None for argument in arguments):
            return Rejected(INVALID_HANDLE)
        return outcome_of(self._machine.call(function, *arguments))

    def _create(self, thing: Thing, slot: Slot, function: str, flags: int) -> Outcome:
        made = ctypes.c_void_p()
        status = self._machine.call(function, ctypes.byref(made), flags)
        if not status:
            self._handles[thing, slot] = made.value or 0
            serial = self._machine.ledger.made
            self._names[serial] = slot
            if thing is Thing.STREAM:
                self._stream_serials[slot] = serial
        return outcome_of(status)

    def _destroy(self, thing: Thing, slot: Slot, function: str) -> Outcome:
        outcome = self._ask(function, self._find(thing, slot))
        if isinstance(outcome, Done):
            del self._handles[thing, slot]
        return outcome

    # -- captures --------------------------------------------------------------------------------------------------

    def _capture(self, operation: ops.BeginCapture | ops.EndCapture | ops.LaunchGraph | ops.DestroyGraph) -> Outcome:
        match operation:
            case ops.BeginCapture(slot, mode):
                return self._ask("StreamBeginCapture", self._stream(slot), _MODES[mode])
            case ops.EndCapture():
                return self._end_capture(operation)
            case ops.LaunchGraph(slot, stream):
                return self._ask("GraphLaunch", self._find(Thing.GRAPH_EXEC, slot), self._stream(stream))
            case ops.DestroyGraph(slot):
                return self._destroy(Thing.GRAPH_EXEC, slot, "GraphExecDestroy")

    def _end_capture(self, operation: ops.EndCapture) -> Outcome:
        """End a capture and keep it as an executable graph, which is what a sequence launches."""
        stream, graph, executable = self._stream(operation.stream), ctypes.c_void_p(), ctypes.c_void_p()
        if stream is None:
            return Rejected(INVALID_HANDLE)
        status = self._machine.call("StreamEndCapture", stream, ctypes.byref(graph))
        if not status:
            status = self._machine.call("GraphInstantiateWithFlags", ctypes.byref(executable), graph, 0)
            self._machine.call("GraphDestroy", graph)
        if not status:
            self._handles[Thing.GRAPH_EXEC, operation.slot] = executable.value or 0
        return outcome_of(status)

    # -- counters and the end --------------------------------------------------------------------------------------

    def readings(self) -> Readings:
        """Read every gauge: what is owned by slot, everything else from the runtime's ledger."""
        if self._closing is not None:
            return self._closing.readings
        counted = self._machine.ledger.counted
        return {
            (Gauge.LIVE, Source.CLAIM): self._live_bytes,
            (Gauge.BLOCKS, Source.CLAIM): self._live_blocks,
            (Gauge.RESERVED, Source.LEDGER): counted(Thing.DEVICE, Thing.MANAGED)[1],
            (Gauge.PINNED, Source.LEDGER): counted(Thing.PINNED)[1],
            (Gauge.STREAMS, Source.LEDGER): counted(Thing.STREAM)[0],
            (Gauge.EVENTS, Source.LEDGER): counted(Thing.EVENT)[0],
            (Gauge.GRAPHS, Source.LEDGER): counted(Thing.GRAPH, Thing.GRAPH_EXEC)[0],
        }

    def close(self) -> Closing:
        """Give everything back that the sequence still owns, read the gauges and end the machine."""
        if self._closing is None:
            self._release_all()
            self._closing = Closing(self._observe(), self.readings())
            self._machine.close()
        return self._closing

    def _release_all(self) -> None:
        for thing, function in _DESTROYS.items():  # a stream takes a capture with it that would forbid to free
            for slot in [slot for kind, slot in self._handles if kind is thing]:
                self._destroy(thing, slot, function)
        for slot in list(self._blocks):
            self._free(slot)


@dataclass(frozen=True, slots=True)
class Simulator:
    """The backend, with one schedule of work."""

    schedule: str = "eager"
    seed: int = 0

    def is_compiled(self) -> bool:
        """Say whether the runtime is in the cache. Raises as :meth:`describe` where it can't be compiled."""
        return is_library_built()

    def describe(self) -> Description:
        """Say what it can do; raises :class:`BackendUnavailable` where no machine can be had."""
        build_library()
        require_addresses(MachineSettings(Simulated(Flavour.CUDA, _VERSIONS[Flavour.CUDA])))
        return Description(
            name="simulated",
            version="1",
            capabilities=_CAPABILITIES,
            promises=frozenset(
                {Promise.RECLAIMS_BEFORE_OOM, Promise.EXACT_FOOTPRINT, Promise.CAPACITY_LIMIT, Promise.TRACKS_USES}
            ),
            gauges=GAUGES,
            alignment_bytes=256,
            chunk_bytes=0,
            footprint_factor=1,
        )

    def open(self, profile: DeviceProfile) -> Context:
        """Start a machine. Raises :class:`BackendUnavailable` where one is open already."""
        simulated = Simulated(profile.flavour, _VERSIONS[profile.flavour])
        return SimulatedContext(Machine(MachineSettings(simulated, self.schedule, self.seed, device_options(profile))))


ALWAYS_DRIVEN: Final = frozenset(
    {
        Capability.MEMORY,
        Capability.CAPACITY,
        Capability.COPY,
        Capability.FILL,
        Capability.LAUNCH,
        Capability.STREAMS,
        Capability.LEGACY_DEFAULT_STREAM,
        Capability.EVENTS,
        Capability.STALL,
        Capability.ORDER_LEDGER,
        Capability.BACKING_LEDGER,
    }
)
"""What the runtime does for every allocator above it."""
_CAPABILITIES: Final = ALWAYS_DRIVEN | {
    Capability.FLAVOUR,
    Capability.PINNED,
    Capability.MANAGED,
    Capability.CAPTURE,
    Capability.DEVICES,
}
GAUGES: Final[Mapping[Gauge, frozenset[Source]]] = {
    Gauge.LIVE: _CLAIM,
    Gauge.BLOCKS: _CLAIM,
    Gauge.RESERVED: _LEDGER,
    Gauge.PINNED: _LEDGER,
    Gauge.STREAMS: _LEDGER,
    Gauge.EVENTS: _LEDGER,
    Gauge.GRAPHS: _LEDGER,
}


def backend() -> Backend:
    """Return the simulated backend with the eager schedule."""
    return Simulator()
