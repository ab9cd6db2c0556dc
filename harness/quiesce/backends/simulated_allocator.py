"""An allocator above the simulated runtime, in one process with it, driven operation by operation.

Blocks come from the allocator. Streams, events, captures, copies and launches go to the runtime, as its users' do. What
the allocator asked of the runtime meanwhile, and what it holds, is read from the runtime's ledger.

A driver derives a context from :class:`AllocatorContext`, describes itself with :func:`describe_allocator` and is
served by ``quiesce.serve_again`` in a process that ``quiesce.simulator.runtime.launch`` started. This module is a door:
besides what it defines, ``__all__`` has what a driver needs of the machine below.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.backends.simulated import ALWAYS_DRIVEN, GAUGES, OUT_OF_MEMORY, Block, SimulatedContext, code_of
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile, Promise
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.operations import FailurePoint, InjectedError, MemoryKind, Operation, Slot
from quiesce.model.outcomes import (
    BACKING_ERROR,
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
from quiesce.simulator.runtime import SETTINGS_VARIABLE, Machine, MachineSettings, Simulated, Thing, device_options

__all__ = [
    "AllocatorContext",
    "Owned",
    "Refused",
    "Unable",
    "describe_allocator",
    "start_machine",
    "Machine",
    "OUT_OF_MEMORY",
    "Simulated",
    "Thing",
    "code_of",
]

_MEMORY_CALLS: Final = 9
"""``enum call_kind`` of ``native/ledger/call_kinds.h``: allocations of memory of whatever kind."""
_ANSWERS: Final = {InjectedError.OUT_OF_MEMORY: 2, InjectedError.FOREIGN: 999}
"""``cudaErrorMemoryAllocation`` and ``cudaErrorUnknown``."""


class Refused(Exception):
    """The allocator refused a request with an error that is no lack of memory, ``code`` by its word."""

    def __init__(self, code: str = BACKING_ERROR) -> None:
        super().__init__(code)
        self.code = code


class Unable(Exception):
    """The allocator has no way to do what was asked."""


@dataclass(frozen=True, slots=True)
class Owned(Block):
    """A block of the allocator. ``stream`` is the slot it was allocated on, ``token`` what was handed out for it."""

    stream: Slot | None
    pool: Slot | None
    token: object


def describe_allocator(
    name: str,
    version: str,
    capabilities: frozenset[Capability],
    promises: frozenset[Promise],
    claims: frozenset[Gauge],
    *,
    without: frozenset[Gauge] = frozenset(),
    alignment_bytes: int,
    chunk_bytes: int,
    footprint_factor: int,
) -> Description:
    """Describe an allocator by what it adds to what the runtime does.

    ``claims`` are the gauges that it counts itself. ``without`` are those of the ledger that say nothing of it, such as
    the events of a library that keeps them for their next use.
    """
    gauges = {gauge: sources for gauge, sources in GAUGES.items() if Source.LEDGER in sources and gauge not in without}
    for gauge in claims:
        gauges[gauge] = gauges.get(gauge, frozenset()) | {Source.CLAIM}
    return Description(
        name=name,
        version=version,
        capabilities=ALWAYS_DRIVEN | capabilities,
        promises=promises,
        gauges=gauges,
        alignment_bytes=alignment_bytes,
        chunk_bytes=chunk_bytes,
        footprint_factor=footprint_factor,
    )


def start_machine(profile: DeviceProfile, simulated: Simulated) -> Machine:
    """Start the machine of ``profile`` with the schedule and the seed that this process was started with.

    Raises :class:`BackendUnavailable` for another flavour's profile.
    """
    if profile.flavour is not simulated.flavour:
        raise BackendUnavailable(
            "simulated", f"this allocator is built for {simulated.flavour}", "choose cases of that flavour"
        )
    started = dict(word.split("=", 1) for word in os.environ.get(SETTINGS_VARIABLE, "").split(";") if word)
    schedule, seed = started.get("schedule", "eager"), int(started.get("seed", "0"))
    library = simulated.libraries[0] if started else None  # the very one that the allocator under test loads
    return Machine(MachineSettings(simulated, schedule, seed, device_options(profile)), library)


class AllocatorContext(SimulatedContext, abc.ABC):
    """An opened machine with an allocator above it. Streams are handles of the runtime, 0 the default one.

    Every hook raises :class:`MemoryError` for a documented lack of memory, :class:`Refused` for another refusal and
    :class:`Unable` for what the allocator has no way to do.
    """

    def __init__(self, machine: Machine, described: Description) -> None:
        super().__init__(machine)
        self._gauges = described.gauges
        self._shut = False
        self._claims: tuple[Gauge, ...] = ()

    # -- what a driver writes --------------------------------------------------------------------------------------

    @abc.abstractmethod
    def obtain(self, wanted: ops.Allocate, stream: int) -> tuple[int, object]:
        """Allocate; return the address, and what :meth:`give_back` needs beside it."""

    @abc.abstractmethod
    def give_back(self, block: Owned, stream: int) -> None:
        """Free a block behind the work of ``stream``."""

    @abc.abstractmethod
    def trim(self, kind: MemoryKind, pool: Slot | None) -> None:
        """Return unused cached memory to the runtime."""

    @abc.abstractmethod
    def shut(self) -> None:
        """Return everything to the runtime: nothing is owned any more."""

    @abc.abstractmethod
    def claims(self) -> Mapping[Gauge, int]:
        """Return what the allocator counts itself."""

    def use(self, block: Owned, stream: int) -> None:
        """Tell the allocator that a copy, fill or kernel on ``stream`` will use a block, where it wants to be told."""

    def create_pool(self, slot: Slot, limit_bytes: int | None) -> None:
        """Make an allocator of its own above the same runtime."""
        raise Unable("there is one allocator")

    def destroy_pool(self, slot: Slot) -> None:
        """Destroy one; its blocks are freed already."""
        raise Unable("there is one allocator")

    def stage(self, wanted: ops.Stage, source: Owned, stream: int) -> tuple[int, object]:
        """Bring a host block to a new device block the way the library does it."""
        raise Unable("it stages nothing")

    # -- what is the same for all ----------------------------------------------------------------------------------

    def _answer(self, operation: Operation) -> Outcome:
        try:
            return self._perform_above(operation)
        except MemoryError:
            return OutOfMemory()
        except Refused as refused:
            return Rejected(refused.code)
        except Unable as unable:
            return Unsupported(str(unable))

    def _perform_above(self, operation: Operation) -> Outcome:
        match operation:
            case ops.Free(slot, stream):
                return self._free(slot, stream)
            case ops.Trim(kind, pool):
                self.trim(kind, pool)
            case ops.Stage():
                return self._stage(operation)
            case ops.CreatePool(slot, limit_bytes):
                self.create_pool(slot, limit_bytes)
            case ops.DestroyPool(slot):
                for name in [name for name, block in self._owned() if block.pool == slot]:
                    self._free(name)
                self.destroy_pool(slot)
            case ops.InjectFailure(FailurePoint.BACKING, nth, error):
                self._machine.control("fail", _MEMORY_CALLS, nth, _ANSWERS[error])
            case ops.InjectFailure():
                raise Unable("its own bookkeeping cannot be made to fail")
            case _:
                return self._perform_below(operation)
        return Done()

    def _perform_below(self, operation: Operation) -> Outcome:
        """Tell the allocator which blocks an operation uses, and hand it to the runtime."""
        for slot, stream in _uses(operation):
            if slot in self._blocks:
                self.use(self._block(slot), self._handle(stream))
        return super()._answer(operation)

    def _owned(self) -> Iterator[tuple[Slot, Owned]]:
        return ((slot, block) for slot, block in self._blocks.items() if isinstance(block, Owned))

    def _block(self, slot: Slot) -> Owned:
        block = self._blocks.get(slot)
        if not isinstance(block, Owned):
            raise Refused(INVALID_VALUE)
        return block

    def _handle(self, slot: Slot | None) -> int:
        handle = self._stream(slot)
        if handle is None:
            raise Refused(INVALID_HANDLE)
        return handle.value or 0

    def _allocate(self, request: ops.Allocate) -> Outcome:
        stream = self._handle(request.stream)
        if request.slot in self._blocks:
            return Rejected(INVALID_VALUE)
        if request.size_bytes > SIZE_BYTES_MAX:
            return OutOfMemory()
        address, token = self.obtain(request, stream)
        self._blocks[request.slot] = Owned(
            address, request.size_bytes, request.kind, request.stream, request.pool, token
        )
        return Allocated(address)

    def _stage(self, request: ops.Stage) -> Outcome:
        source, stream = self._block(request.source), self._handle(request.stream)
        address, token = self.stage(request, source, stream)
        self._blocks[request.slot] = Owned(address, source.size_bytes, MemoryKind.DEVICE, request.stream, None, token)
        return Allocated(address)

    def _free(self, slot: Slot, named: Slot | None = None) -> Outcome:
        """Free on the stream that is named, else the one of the allocation, else (it is gone) the default stream."""
        block = self._block(slot)
        if named is None:
            handle = self._stream(block.stream)
            stream = 0 if handle is None else handle.value or 0
        else:
            stream = self._handle(named)
        self.give_back(block, stream)
        del self._blocks[slot]
        return Done()

    def _copy(self, request: ops.Copy) -> Outcome:
        for slot in (request.source, request.destination):
            self.use(self._block(slot), self._handle(request.stream))
        return super()._copy(request)

    def readings(self) -> Readings:
        """Read every gauge: the runtime's ledger, and what the allocator claims."""
        if self._closing is not None:
            return self._closing.readings
        claims = dict.fromkeys(self._claims, 0) if self._shut else self.claims()
        counted: dict[tuple[Gauge, Source], int] = {
            (gauge, source): value
            for (gauge, source), value in super().readings().items()
            if source is Source.LEDGER and gauge in self._gauges
        }
        return {**counted, **{(gauge, Source.CLAIM): value for gauge, value in claims.items()}}

    def _release_all(self) -> None:
        super()._release_all()
        self._claims = tuple(self.claims())
        self.shut()
        self._shut = True


def _uses(operation: Operation) -> Iterator[tuple[Slot, Slot | None]]:
    match operation:
        case ops.Launch(reads, writes, _, stream):
            yield from ((slot, stream) for slot in (*reads, *writes))
        case ops.Fill(slot, _, stream):
            yield slot, stream
