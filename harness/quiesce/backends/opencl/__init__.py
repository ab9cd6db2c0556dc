"""The OpenCL backend: PyOpenCL's memory pool, queues and events on a real OpenCL device, such as PoCL's CPU device.

What is measured comes from below the pool: a ledger of what OpenCL handed out and got back (``reserved``,
``backing-calls``), and the runtime's own reference count of the context (``retained``), which the OpenCL
specification offers "for identifying memory leaks". The pool's counters are claims. PoCL enforces no capacity,
so none is offered. PyOpenCL is imported when the backend is described or opened, not before.

The kernel that ``launch`` runs reads and writes the first byte of each declared block.
"""

from __future__ import annotations

import functools
import os
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Final

from quiesce.backends.device_tables import Refused
from quiesce.backends.opencl.ledger import OpenClLedger
from quiesce.backends.opencl.memory import ALIGNMENT_BYTES, Memory
from quiesce.backends.opencl.streams import Streams
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Closing, Description, DeviceProfile, Promise, Reply
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import Observation
from quiesce.model.operations import MemoryKind, Operation
from quiesce.model.outcomes import (
    INVALID_VALUE,
    NOT_READY,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
    Unsupported,
)

if TYPE_CHECKING:
    import types

    import pyopencl as cl
    from pyopencl.tools import PooledSVM


def _source(reads: int, writes: int, argument_bytes: int) -> str:
    parameters = [f"__global const uchar *r{index}" for index in range(reads)]
    parameters += [f"__global uchar *w{index}" for index in range(writes)]
    lines = [f"seen ^= r{index}[0];" for index in range(reads)]
    padding = ""
    if argument_bytes:
        padding = f"typedef struct {{ uchar bytes[{argument_bytes}]; }} padding_t;\n"
        parameters.append("padding_t padding")
        lines.append("seen ^= padding.bytes[0];")
    lines += [f"w{index}[0] = seen;" for index in range(writes)]
    return f"{padding}__kernel void touch({', '.join(parameters)}) {{ uchar seen = 0; {' '.join(lines)} }}\n"


@functools.cache
def compiler_complaint(pyopencl: types.ModuleType, device: cl.Device) -> str:
    """Return why a device compiles no kernel, or an empty text: PoCL's compiler may be older than the processor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyopencl.CompilerWarning)
        try:
            pyopencl.Program(pyopencl.Context([device]), _source(0, 0, 0)).build(cache_dir=False)
        except pyopencl.Error as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            return next((line for line in lines if "error:" in line), lines[0] if lines else type(error).__name__)
    return ""


class Kernels:
    """Built kernels by the number of blocks they read and write and the bytes of further arguments."""

    def __init__(self, pyopencl: types.ModuleType, context: cl.Context) -> None:
        self._cl = pyopencl
        self._context = context
        self._built: dict[tuple[int, int, int], cl.Kernel] = {}
        self.retained = 0
        """References to the context that the built kernels hold; they are the backend's own and no leak."""

    def _kernel(self, reads: int, writes: int, argument_bytes: int) -> cl.Kernel:
        key = reads, writes, argument_bytes
        if key not in self._built:
            before = self._context.reference_count
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self._cl.CompilerWarning)
                program = self._cl.Program(self._context, _source(*key)).build()
            self._built[key] = self._cl.Kernel(program, "touch")
            self.retained += self._context.reference_count - before
        return self._built[key]

    def launch(
        self, queue: cl.CommandQueue, reads: list[PooledSVM], writes: list[PooledSVM], argument_bytes: int
    ) -> None:
        """Enqueue one work item that touches the blocks; ``argument_bytes`` more are passed by value."""
        import numpy

        kernel = self._kernel(len(reads), len(writes), argument_bytes)
        blocks = [*reads, *writes]
        for index, block in enumerate(blocks):
            kernel.set_arg(index, block)
        if argument_bytes:
            kernel.set_arg(len(blocks), numpy.zeros(argument_bytes, numpy.uint8))
        self._cl.enqueue_nd_range_kernel(queue, kernel, (1,), None)
        queue.flush()

    def close(self) -> None:
        """Give the kernels up."""
        self._built.clear()
        self.retained = 0


NAME: Final = "opencl"
DEVICE: Final = "QUIESCE_OPENCL_DEVICE"
"""The variable that says which of the devices to use: a number from 0, which goes round where devices are fewer."""

REMEDY: Final = "install PyOpenCL with a CPU runtime: pip install 'quiesce[opencl]'"
NEWER: Final = "install a newer OpenCL runtime beside it, such as your system's PoCL (Debian: pocl-opencl-icd)"

_LETTING_GO_TRIES: Final = 50
_LETTING_GO_SECONDS: Final = 0.001

_CAPABILITIES: Final = frozenset(
    {
        Capability.MEMORY,
        Capability.POOL,
        Capability.POOLS,
        Capability.PAGEABLE,
        Capability.COPY,
        Capability.STAGING,
        Capability.FILL,
        Capability.LAUNCH,
        Capability.STREAMS,
        Capability.EVENTS,
        Capability.STALL,
        Capability.BACKING_LEDGER,
        Capability.ORDER_LEDGER,
    }
)
_CLAIM: Final = frozenset({Source.CLAIM})
_LEDGER: Final = frozenset({Source.LEDGER})
_GAUGES: Final = {
    Gauge.LIVE: _CLAIM,
    Gauge.BLOCKS: _CLAIM,
    Gauge.STREAMS: _CLAIM,
    Gauge.EVENTS: _CLAIM,
    Gauge.RESERVED: _CLAIM | _LEDGER,
    Gauge.BACKING_CALLS: _LEDGER,
    Gauge.RETAINED: _LEDGER,
}

_OUT_OF_MEMORY: Final = frozenset({"MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY"})


def _import_pyopencl() -> types.ModuleType:
    try:
        import pyopencl
        import pyopencl.tools
    except ImportError as error:
        raise BackendUnavailable(NAME, f"PyOpenCL cannot be imported ({error})", REMEDY) from error
    return pyopencl


def _find_device(pyopencl: types.ModuleType) -> cl.Device:
    """Return the chosen one of the devices that compile, have shared virtual memory and a dispatch table like ours."""
    try:
        platforms = pyopencl.get_platforms()
    except pyopencl.Error as error:
        raise BackendUnavailable(NAME, f"there is no OpenCL platform ({error})", REMEDY) from error
    devices: list[cl.Device] = [
        device
        for platform in platforms
        if "cl_khr_icd" in platform.extensions.split() and platform.version.startswith("OpenCL 3.")
        for device in platform.get_devices()
        if device.svm_capabilities & pyopencl.device_svm_capabilities.COARSE_GRAIN_BUFFER
    ]
    if not devices:
        raise BackendUnavailable(NAME, "no OpenCL 3 device has shared virtual memory (SVM)", REMEDY)
    complaints = [compiler_complaint(pyopencl, device) for device in devices]
    devices = [device for device, complaint in zip(devices, complaints, strict=True) if not complaint]
    if not devices:
        raise BackendUnavailable(NAME, f"no OpenCL device compiles a kernel here ({complaints[0]})", NEWER)
    chosen = os.environ.get(DEVICE, "0")
    if not (chosen.isascii() and chosen.isdigit()):
        raise BackendUnavailable(NAME, f"{DEVICE}='{chosen}' is no number", f"write {DEVICE}=0 for the first device")
    return devices[int(chosen) % len(devices)]


class OpenClBackend:
    """PyOpenCL on an OpenCL device that has shared virtual memory: the first, or the one that was chosen."""

    def describe(self) -> Description:
        """Say what the device offers. Raises :class:`BackendUnavailable` without PyOpenCL or a device."""
        cl = _import_pyopencl()
        device = _find_device(cl)
        return Description(
            name=NAME,
            version=f"PyOpenCL {cl.VERSION_TEXT} on {device.platform.version.strip()}",
            capabilities=_CAPABILITIES,
            promises=frozenset({Promise.TRIMS_TO_ZERO}),
            gauges=_GAUGES,
            alignment_bytes=ALIGNMENT_BYTES,
            chunk_bytes=ALIGNMENT_BYTES,
        )

    def open(self, profile: DeviceProfile) -> OpenClContext:
        """Open a context of its own. Raises :class:`BackendUnavailable` without PyOpenCL or a device."""
        cl = _import_pyopencl()
        return OpenClContext(cl, _find_device(cl))


def _release(streams: Streams, memory: Memory, kernels: Kernels, ledger: OpenClLedger) -> tuple[Observation, ...]:
    """Complete all work and give everything back; return what the ledger saw of it."""
    streams.synchronize_all()
    memory.close()
    seen = ledger.drain()
    ledger.close()
    kernels.close()
    streams.close()
    return seen


class OpenClContext:
    """One OpenCL context with its queues and pools."""

    def __init__(self, pyopencl: types.ModuleType, device: cl.Device) -> None:
        self._cl = pyopencl
        self._argument_bytes_max = int(device.max_parameter_size)
        self._context: cl.Context = pyopencl.Context([device])
        self._streams = Streams(pyopencl, self._context)
        self._kernels = Kernels(pyopencl, self._context)
        self._ledger = OpenClLedger(pyopencl, self._streams)
        self._memory = Memory(pyopencl, self._context, self._streams, self._ledger)
        self._ledger.watch(self._context.int_ptr)
        self._ledger.watch(self._streams.default.require().int_ptr)
        self._own_references = self._context.reference_count
        self._closing: Closing | None = None
        # Also for a context that nobody closes: a stalled queue or a late free must not outlive the interpreter.
        self._release = weakref.finalize(self, _release, self._streams, self._memory, self._kernels, self._ledger)

    def perform(self, operation: Operation) -> Reply:
        """Perform one operation; after ``close`` everything is refused."""
        if self._closing is not None:
            return Reply(Rejected(INVALID_VALUE))
        try:
            outcome = self._perform(operation)
        except Refused as refused:
            outcome = Rejected(refused.code)
        except MemoryError:  # NumPy's; PyOpenCL's own MemoryError below carries a code
            outcome = OutOfMemory()
        except self._cl.Error as error:
            name = self._cl.status_code.to_string(error.code, "error %d")
            outcome = OutOfMemory() if name in _OUT_OF_MEMORY else Rejected(name.lower().replace("_", "-"))
        self._memory.sweep()
        return Reply(outcome, self._ledger.drain())

    def _perform(self, operation: Operation) -> Outcome:
        memory, streams = self._memory, self._streams
        match operation:
            case ops.Allocate():
                return self._allocate(operation)
            case ops.Stage(slot, source, stream):
                return Allocated(memory.stage(slot, source, streams.find(stream)).address)
            case ops.Free(slot, stream):
                memory.free(slot, None if stream is None else streams.find(stream))
            case ops.Trim(kind, pool):
                if kind is not MemoryKind.DEVICE:
                    return Unsupported(f"there is no pool of {kind} memory")
                memory.trim(pool)
            case ops.Copy(source, destination) if source == destination:
                return Unsupported("OpenCL does not copy memory onto itself")
            case ops.Copy(source, destination, size_bytes, stream):
                memory.copy(source, destination, size_bytes, streams.find(stream))
            case ops.Fill(slot, value, stream):
                memory.fill(slot, value, streams.find(stream))
            case ops.Launch():
                return self._launch(operation)
            case ops.CreatePool(slot, limit_bytes):
                if limit_bytes is not None:
                    return Unsupported("PyOpenCL's pools have no limit")
                memory.create_pool(slot, streams.default)
            case ops.DestroyPool(slot):
                memory.destroy_pool(slot)
            case ops.SelectDevice(ordinal) if ordinal:
                return Unsupported("the backend uses one device")
            case ops.SelectDevice() | ops.Mark():
                pass
            case _:
                return self._perform_on_streams(operation)
        return Done()

    def _perform_on_streams(self, operation: Operation) -> Outcome:
        streams = self._streams
        match operation:
            case ops.CreateStream(slot):
                self._ledger.watch(streams.create(slot).require().int_ptr)
            case ops.DestroyStream(slot):
                stream = streams.find(slot)
                self._memory.retire_stream(stream)
                streams.destroy(stream)
            case ops.SynchronizeStream(stream_slot):
                streams.synchronize(streams.find(stream_slot))
            case ops.QueryStream(stream_slot):
                return Done() if streams.is_idle(streams.find(stream_slot)) else Rejected(NOT_READY)
            case ops.SynchronizeDevice():
                streams.synchronize_all()
            case ops.CreateEvent(slot):
                streams.create_event(slot)
            case ops.DestroyEvent(slot):
                streams.destroy_event(slot)
            case ops.RecordEvent(slot, stream_slot):
                streams.record(slot, streams.find(stream_slot))
            case ops.WaitEvent(slot, stream_slot):
                streams.wait(streams.find_event(slot), streams.find(stream_slot))
            case ops.QueryEvent(slot):
                return Done() if streams.is_complete(streams.find_event(slot)) else Rejected(NOT_READY)
            case ops.SynchronizeEvent(slot):
                streams.synchronize_event(streams.find_event(slot))
            case ops.Stall(slot):
                streams.stall(streams.find(slot))
            case ops.Release(slot):
                streams.release(streams.find(slot))
            case _:
                return Unsupported(f"OpenCL has nothing like {type(operation).__name__}")
        return Done()

    def _allocate(self, request: ops.Allocate) -> Outcome:
        if (request.alignment_bytes or 1) > ALIGNMENT_BYTES:
            return Unsupported(f"PyOpenCL's pool aligns to {ALIGNMENT_BYTES} bytes")
        match request.kind:
            case MemoryKind.DEVICE:
                stream = self._streams.find(request.stream)
                return Allocated(self._memory.allocate(request.slot, request.size_bytes, stream, request.pool).address)
            case MemoryKind.PAGEABLE if request.pool is None:
                return Allocated(self._memory.allocate_host(request.slot, request.size_bytes).address)
            case kind:
                return Unsupported(f"there is no allocator of {kind} memory")

    def _launch(self, request: ops.Launch) -> Outcome:
        if request.instance is not None:
            return Unsupported("OpenCL has no execution-space instances")
        stream = self._streams.find(request.stream)
        reads, writes = self._memory.kernel_blocks(request.reads), self._memory.kernel_blocks(request.writes)
        if reads is None or writes is None:
            return Unsupported("a kernel does not reach pageable memory")
        if 8 * (len(reads) + len(writes)) + request.argument_bytes > self._argument_bytes_max:
            return Unsupported(f"the device takes {self._argument_bytes_max} bytes of kernel arguments")
        self._kernels.launch(
            stream.require(),
            [block.pooled for block in reads],
            [block.pooled for block in writes],
            request.argument_bytes,
        )
        self._memory.note_use(stream, *reads, *writes)
        return Done()

    def readings(self) -> Readings:
        """Read every gauge. What waits behind a stall counts as held on both sides of ``reserved``."""
        if self._closing is not None:
            return self._closing.readings
        self._streams.settle()
        return {
            (Gauge.LIVE, Source.CLAIM): self._memory.live_bytes,
            (Gauge.BLOCKS, Source.CLAIM): self._memory.live_blocks,
            (Gauge.STREAMS, Source.CLAIM): self._streams.stream_count,
            (Gauge.EVENTS, Source.CLAIM): self._streams.event_count,
            (Gauge.RESERVED, Source.CLAIM): self._memory.managed_bytes + self._ledger.leaving_bytes,
            (Gauge.RETAINED, Source.LEDGER): self._retained(self._own_references + self._kernels.retained),
            (Gauge.RESERVED, Source.LEDGER): self._ledger.held_bytes,
            (Gauge.BACKING_CALLS, Source.LEDGER): self._ledger.calls,
        }

    def _retained(self, own_references: int) -> int:
        """Return how many objects keep the context alive beyond those that the backend needs itself."""
        return max(0, int(self._context.reference_count) - own_references)

    def _retained_at_last(self) -> int:
        """Return the same for a context that was given back: a driver's threads let go a moment after work is done."""
        for _ in range(_LETTING_GO_TRIES):
            if not self._retained(1):
                break
            time.sleep(_LETTING_GO_SECONDS)
        return self._retained(1)

    def close(self) -> Closing:
        """Complete all work and release everything; what the context is still kept alive by is read afterwards."""
        if self._closing is None:
            observations = self._release() or ()
            readings = dict.fromkeys(((gauge, source) for gauge, sources in _GAUGES.items() for source in sources), 0)
            readings[Gauge.RESERVED, Source.LEDGER] = self._ledger.held_bytes
            readings[Gauge.BACKING_CALLS, Source.LEDGER] = self._ledger.calls
            readings[Gauge.RETAINED, Source.LEDGER] = self._retained_at_last()
            self._closing = Closing(observations, readings)
        return self._closing


def backend() -> OpenClBackend:
    """Return the backend; the entry point of the group ``quiesce.backends``."""
    return OpenClBackend()
