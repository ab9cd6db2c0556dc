"""One opened context of the CuPy backend: every operation, and what CuPy answers to it, in the harness's words."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, Final

from quiesce.backends.cupy.installation import Found
from quiesce.backends.cupy.ledger import (
    OUT_OF_MEMORY,
    STICKY,
    BackingAllocator,
    CupyLedger,
    ForeignError,
    word_of,
    word_of_guard,
)
from quiesce.backends.cupy.memory import ARGUMENT_BYTES_MAX, Memory, note_use
from quiesce.backends.cupy.pools import PinnedPool
from quiesce.backends.cupy.streams import Stream, Streams, Unsupportable
from quiesce.backends.cupy.versions import ALIGNMENT_BYTES
from quiesce.backends.device_tables import Refused
from quiesce.model import operations as ops
from quiesce.model.backend import BackendFault, Closing, Reply
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import HandleKind
from quiesce.model.operations import CaptureMode, FailurePoint, MemoryKind, Operation
from quiesce.model.outcomes import (
    BACKING_ERROR,
    INVALID_VALUE,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
    Unsupported,
)

SURVIVES: Final = "device_survives_every_request"
"""The rule that is broken where the runtime says that this process can use its device no more."""

_MODES: Final = {CaptureMode.GLOBAL: 0, CaptureMode.THREAD_LOCAL: 1, CaptureMode.RELAXED: 2}
"""``cudaStreamCaptureMode`` and ``hipStreamCaptureMode``."""
_MAY_WAIT: Final = (
    ops.Trim,
    ops.DestroyPool,
    ops.Stage,
    ops.SynchronizeStream,
    ops.SynchronizeEvent,
    ops.SynchronizeDevice,
)


@dataclass(slots=True)
class Parts:
    """What a context is made of. ``pools`` is the caching or the asynchronous set."""

    found: Found
    streams: Streams
    pools: Any
    pinned: PinnedPool
    memory: Memory
    backing: BackingAllocator
    ledger: CupyLedger
    graphs: dict[str, Any]


class CupyContext:
    """One context: its streams, pools and blocks. The process's default pools and current device stay as they are."""

    def __init__(self, parts: Parts, gauges: frozenset[tuple[Gauge, Source]]) -> None:
        self._cupy = parts.found.cupy
        self._kernels = parts.found.kernels
        self._flavour = parts.found.installed.flavour
        self._devices = parts.found.installed.devices
        self._streams = parts.streams
        self._pools = parts.pools
        self._pinned = parts.pinned
        self._memory = parts.memory
        self._backing = parts.backing
        self._ledger = parts.ledger
        self._graphs = parts.graphs
        self._gauges = gauges
        self._device = 0
        self._closing: Closing | None = None
        # Also for a context that nobody closes: a stalled stream must not outlive the interpreter's own pools.
        self._release = weakref.finalize(self, _release, parts)

    def perform(self, operation: Operation) -> Reply:
        """Perform one operation; after ``close`` everything is refused.

        Raises :class:`BackendFault` where the runtime says that the process has to be started anew.
        """
        if self._closing is not None:
            return Reply(Rejected(INVALID_VALUE))
        with self._cupy.cuda.Device(self._device), self._pools.hook:
            try:
                with self._streams.guarded():
                    outcome = self._answer(operation)
            except Unsupportable as unsupportable:
                outcome = Unsupported(str(unsupportable))
        return Reply(outcome, self._ledger.drain())

    def _answer(self, operation: Operation) -> Outcome:
        if isinstance(operation, _MAY_WAIT) and self._streams.is_stalled and self._streams.capturing:
            return Unsupported(
                "a request that may wait for a stalled stream can't run while another stream is captured"
            )
        driver = self._cupy.cuda.driver
        try:
            return self._perform(operation)
        except Refused as refused:
            return Rejected(refused.code)
        except ForeignError:
            return Rejected(BACKING_ERROR)
        except (MemoryError, OverflowError):  # CuPy's pool, NumPy; a size that no C type holds
            return OutOfMemory()
        except (self._cupy.cuda.runtime.CUDARuntimeError, driver.CUDADriverError) as error:
            return self._outcome_of(int(error.status), str(error))
        except RuntimeError as error:
            word = word_of_guard(str(error))
            if word is None:
                raise
            return Rejected(word)

    def _outcome_of(self, status: int, text: str) -> Outcome:
        if status in STICKY:
            raise BackendFault(SURVIVES, text)
        return OutOfMemory() if status == OUT_OF_MEMORY else Rejected(word_of(status, self._flavour))

    def _perform(self, operation: Operation) -> Outcome:
        memory, pools = self._memory, self._pools
        match operation:
            case ops.Allocate():
                return self._allocate(operation)
            case ops.Stage(slot, source, stream):
                return Allocated(memory.stage(slot, source, self._here(stream)))
            case ops.Free(slot, stream):
                memory.free(slot, None if stream is None else self._find(stream))
            case ops.Trim(MemoryKind.PINNED, None):
                self._pinned.trim()
            case ops.Trim(MemoryKind.PAGEABLE, None):
                return Unsupported("there is no pool of pageable memory")
            case ops.Trim(kind, pool):
                pools.trim(kind, pool)
            case ops.Copy(source, destination, size_bytes, stream):
                memory.copy(source, destination, size_bytes, self._find(stream))
            case ops.Fill(slot, value, stream):
                memory.fill(slot, value, self._find(stream))
            case ops.Launch():
                self._launch(operation)
            case ops.CreatePool(slot, limit_bytes):
                pools.create(slot, limit_bytes)
            case ops.DestroyPool(slot):
                pools.require(slot)
                memory.free_pool(slot)
                pools.destroy(slot)
            case ops.InjectFailure(FailurePoint.BACKING, nth, error):
                pools.inject(nth, error)
            case ops.InjectFailure():
                return Unsupported("CuPy's own bookkeeping cannot be made to fail")
            case ops.SelectDevice(ordinal):
                if not 0 <= ordinal < self._devices:
                    raise Refused(INVALID_VALUE)
                self._device = ordinal
            case ops.Mark():
                pass
            case _:
                return self._perform_on_streams(operation)
        return Done()

    def _perform_on_streams(self, operation: Operation) -> Outcome:
        streams, check = self._streams, self._cupy.cuda.runtime.check_status
        match operation:
            case ops.CreateStream(slot, nonblocking):
                streams.create(slot, self._device, nonblocking=nonblocking)
            case ops.DestroyStream(slot):
                stream = self._find(slot)
                self._memory.retire_stream(stream)
                streams.destroy(stream)
            case ops.SynchronizeStream(stream_slot):
                stream = self._find(stream_slot)
                streams.synchronize(stream)
                self._memory.note_idle(stream)
            case ops.QueryStream(stream_slot):
                check(streams.query(self._find(stream_slot)))
            case ops.SynchronizeDevice():
                streams.synchronize_device(self._device)
                self._memory.note_idle(*(stream for stream in streams.living if stream.device == self._device))
            case ops.CreateEvent(slot):
                streams.create_event(slot, self._device)
            case ops.DestroyEvent(slot):
                streams.destroy_event(slot)
            case ops.RecordEvent(slot, stream_slot):
                streams.record(streams.find_event(slot), self._find(stream_slot))
            case ops.WaitEvent(slot, stream_slot):
                streams.wait(streams.find_event(slot), self._find(stream_slot))
            case ops.QueryEvent(slot):
                check(streams.query_event(streams.find_event(slot)))
            case ops.SynchronizeEvent(slot):
                streams.synchronize_event(streams.find_event(slot))
            case ops.Stall(slot):
                streams.stall(self._find(slot))
            case ops.Release(slot):
                streams.release(self._find(slot))
            case _:
                return self._perform_on_graphs(operation)
        return Done()

    def _perform_on_graphs(self, operation: Operation) -> Outcome:
        match operation:
            case ops.BeginCapture(stream_slot, mode):
                stream = self._find(stream_slot)
                stream.require().begin_capture(_MODES[mode])
                self._streams.capturing.add(stream)
            case ops.EndCapture(slot, stream_slot):
                self._end_capture(slot, self._find(stream_slot))
            case ops.LaunchGraph(slot, stream_slot):
                stream = self._find(stream_slot)
                self._streams.follow_default(stream)
                self._graph(slot).launch(stream.require())
            case ops.DestroyGraph(slot):
                self._graph(slot)
                del self._graphs[slot]
            case _:
                return Unsupported(f"CuPy has nothing like {type(operation).__name__}")
        return Done()

    def _graph(self, slot: str) -> Any:
        if slot not in self._graphs:
            raise Refused(INVALID_VALUE)
        return self._graphs[slot]

    def _end_capture(self, slot: str, stream: Stream) -> None:
        if slot in self._graphs:
            raise Refused(INVALID_VALUE)
        try:
            self._graphs[slot] = stream.require().end_capture()
        finally:
            if not self._streams.is_captured(stream):  # however it ended, unless it is not this stream's to end
                self._streams.capturing.discard(stream)
                self._memory.settle()

    def _find(self, slot: str | None) -> Stream:
        return self._streams.find(slot, self._device)

    def _here(self, slot: str | None) -> Stream:
        """Return a stream of the current device, which alone can be CuPy's current one."""
        stream = self._find(slot)
        if stream.device != self._device:
            raise Unsupportable("CuPy allocates in the order of a stream of the current device")
        return stream

    def _allocate(self, request: ops.Allocate) -> Outcome:
        if (request.alignment_bytes or 1) > ALIGNMENT_BYTES:
            return Unsupported(f"CuPy promises no alignment beyond {ALIGNMENT_BYTES} bytes")
        match request.kind:
            case MemoryKind.DEVICE | MemoryKind.MANAGED as kind:
                stream = self._here(request.stream)
                return Allocated(self._memory.allocate(request.slot, request.size_bytes, kind, stream, request.pool))
            case kind if request.pool is None:
                self._find(request.stream)
                return Allocated(self._memory.allocate_host(request.slot, request.size_bytes, kind))
            case kind:
                return Unsupported(f"a pool of CuPy's holds no {kind} memory")

    def _launch(self, request: ops.Launch) -> None:
        if request.instance is not None:
            raise Unsupportable("CuPy has no execution-space instances")
        if request.argument_bytes > ARGUMENT_BYTES_MAX:
            raise Unsupportable(f"a kernel takes {ARGUMENT_BYTES_MAX} bytes of arguments")
        stream = self._find(request.stream)
        reads, writes = self._memory.kernel_blocks(request.reads), self._memory.kernel_blocks(request.writes)
        with self._cupy.cuda.Device(stream.device):
            if not self._kernels.is_built(stream.device, request.argument_bytes):
                if self._streams.capturing:
                    raise Unsupportable("no kernel can be loaded while a stream is being captured")
                self._streams.end_all()
                self._kernels.build(stream.device, request.argument_bytes)
            self._streams.follow_default(stream)
            with stream.require():
                self._kernels.launch(stream.device, reads, writes, request.argument_bytes)
        note_use(stream, *reads, *writes)

    def readings(self) -> Readings:
        """Read every gauge."""
        return self._closing.readings if self._closing is not None else self._read()

    def _read(self) -> Readings:
        ledger = self._ledger
        readings: dict[tuple[Gauge, Source], int] = {
            (Gauge.STREAMS, Source.LEDGER): ledger.handles[HandleKind.STREAM],
            (Gauge.EVENTS, Source.LEDGER): ledger.handles[HandleKind.EVENT],
            (Gauge.GRAPHS, Source.CLAIM): len(self._graphs),
            (Gauge.PINNED, Source.LEDGER): ledger.held_bytes(MemoryKind.PINNED),
            (Gauge.BACKING_CALLS, Source.LEDGER): ledger.calls,
            (Gauge.RETAINED, Source.LEDGER): ledger.allocations + ledger.handles.total() + len(self._graphs),
            **self._pools.readings(),
        }
        return {key: readings[key] for key in self._gauges}

    def close(self) -> Closing:
        """Complete all work and release everything; what is left is read afterwards."""
        if self._closing is None:
            self._release()
            self._closing = Closing(self._ledger.drain(), self._read())
            self._backing.reclaim()
        return self._closing


def _wait(parts: Parts) -> None:
    """Wait for the work of all devices."""
    cupy = parts.found.cupy
    for device in range(parts.found.installed.devices):
        with cupy.cuda.Device(device):
            cupy.cuda.runtime.deviceSynchronize()


def _release(parts: Parts) -> None:
    """Complete all work and give everything back, in the order in which CuPy's own objects would go."""
    streams = parts.streams
    with parts.pools.hook:
        for stream in tuple(streams.capturing):
            streams.abandon_capture(stream)
        streams.end_all()
        _wait(parts)
        parts.graphs.clear()
        parts.memory.close()
        _wait(parts)  # for the events that it recorded: a pinned pool keeps memory until they are done
        parts.pools.close()
        parts.pinned.close()
    streams.close()
