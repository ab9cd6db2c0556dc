"""Obligations: which capabilities, all claimed together, oblige a backend to serve an operation in some way.

Strangers are a sequence that names what was never made. Everything is refused, and the backend works afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quiesce.allocators.cases import Case
from quiesce.allocators.generation import GeneratedSequence, needs_of
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile
from quiesce.model.operations import MemoryKind, Operation

_ABOUT: Final[Mapping[type[Operation], Capability]] = {
    ops.Free: Capability.MEMORY,
    ops.DestroyPool: Capability.POOLS,
    ops.DestroyStream: Capability.STREAMS,
    ops.SynchronizeStream: Capability.STREAMS,
    ops.QueryStream: Capability.STREAMS,
    ops.SynchronizeDevice: Capability.STREAMS,
    ops.DestroyEvent: Capability.EVENTS,
    ops.RecordEvent: Capability.EVENTS,
    ops.WaitEvent: Capability.EVENTS,
    ops.QueryEvent: Capability.EVENTS,
    ops.SynchronizeEvent: Capability.EVENTS,
    ops.Release: Capability.STALL,
    ops.EndCapture: Capability.CAPTURE,
    ops.LaunchGraph: Capability.CAPTURE,
    ops.DestroyGraph: Capability.CAPTURE,
    ops.Finalize: Capability.LIFECYCLE,
    ops.DestroyInstance: Capability.INSTANCES,
    ops.Hold: Capability.TAPE,
    ops.Drop: Capability.TAPE,
    ops.Backward: Capability.TAPE,
    ops.Collect: Capability.TAPE,
}
"""What operations are about that need something made before: a case's needs name the request that made it."""
_TRIMMED: Final = {MemoryKind.PINNED: Capability.PINNED, MemoryKind.MANAGED: Capability.MANAGED}


def obliging(operation: Operation) -> frozenset[Capability] | None:
    """Return the capabilities that oblige a backend to serve the operation; None where none do.

    Nobody is obliged to what several of them say nothing about together: pinned memory with an alignment of its
    own, say, or on a stream.
    """
    match operation:
        case ops.Allocate(kind=kind, alignment_bytes=alignment, stream=stream, pool=pool) if (
            kind is not MemoryKind.DEVICE and (alignment, stream, pool) != (None, None, None)
        ):
            return None
        case ops.Trim(MemoryKind.PAGEABLE):
            return None
        case ops.InjectFailure(ops.FailurePoint.BOOKKEEPER):
            return None
    needs = needs_of([operation], DeviceProfile())
    if type(operation) in _ABOUT:
        needs |= {_ABOUT[type(operation)]}
    match operation:
        case ops.Allocate(pool=str()):
            needs |= {Capability.POOLS}
        case ops.Trim(kind, pool):
            needs |= {_TRIMMED[kind]} if kind in _TRIMMED else set()
            needs |= {Capability.POOLS} if pool is not None else set()
    return needs


_NOBODY: Final = "nobody"
_NAMING: Final[tuple[Operation, ...]] = (
    ops.Free(_NOBODY),
    ops.Trim(pool=_NOBODY),
    ops.DestroyPool(_NOBODY),
    ops.Copy(_NOBODY, "a"),
    ops.Stage("b", _NOBODY),
    ops.Fill(_NOBODY, 1),
    ops.Launch(writes=(_NOBODY,)),
    ops.SynchronizeStream(_NOBODY),
    ops.QueryStream(_NOBODY),
    ops.DestroyStream(_NOBODY),
    ops.Stall(_NOBODY),
    ops.RecordEvent(_NOBODY),
    ops.WaitEvent(_NOBODY),
    ops.QueryEvent(_NOBODY),
    ops.DestroyEvent(_NOBODY),
    ops.LaunchGraph(_NOBODY),
    ops.DestroyGraph(_NOBODY),
    ops.DestroyInstance(_NOBODY),
    ops.Drop(_NOBODY),
    ops.Backward(_NOBODY),
)


def strangers(description: Description) -> tuple[Operation, ...]:
    """Return the sequence for a backend: every request that its claims are about, with a name that nothing has."""
    claimed = tuple(each for each in _NAMING if (obliging(each) or frozenset()) <= description.capabilities)
    if Capability.MEMORY not in description.capabilities:
        return claimed
    return (ops.Allocate("a", 64), *claimed, ops.Free("a"), ops.Mark("refused"), ops.Allocate("a", 64), ops.Free("a"))


def case_of(operations: tuple[Operation, ...]) -> Case:
    """Return the sequence as the body of a nameless case."""
    return GeneratedSequence(DeviceProfile(), operations, hostile=True).case()
