"""Actions that let a call below the library fail, and ask for something that makes such calls."""

from __future__ import annotations

from typing import Final

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.generation.actions_memory import allocate, allocate_managed, allocate_pinned, stage, trim
from quiesce.generation.actions_runtime import create_instance, initialize, launch_instance, partition
from quiesce.generation.writer import Writer
from quiesce.operations import FailurePoint, InjectedError

_INJECTIONS: Final = (
    (FailurePoint.BACKING, InjectedError.OUT_OF_MEMORY),
    (FailurePoint.BOOKKEEPER, InjectedError.FOREIGN),
    (FailurePoint.BACKING, InjectedError.FOREIGN),
    (FailurePoint.BOOKKEEPER, InjectedError.OUT_OF_MEMORY),
)
_ASKERS: Final = (
    (allocate, ()),
    (allocate, ()),
    (allocate_pinned, (Capability.PINNED,)),
    (allocate_managed, (Capability.MANAGED,)),
    (stage, (Capability.STAGING,)),
    (trim, (Capability.POOL,)),
)
"""What makes calls below a library, and what it needs."""
_POOLS: Final = (0, 5, 10, 15)
"""Bytes that stand for the default allocator, and for the second pool, the third, and the first again."""


def inject_failure(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a call below the library fail, one of the next three, and ask for something that makes such calls."""
    point, error = _INJECTIONS[a % len(_INJECTIONS)]
    writer.write(ops.InjectFailure(point, (1, 1, 2, 3)[a >> 2 & 3], error))
    askers = [action for action, needs in _ASKERS if writer.can(*needs)]
    askers[(a >> 4) % len(askers)](writer, b & ~3, c, _POOLS[b & 3])


def fail_runtime(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a call below a runtime that is up fail, and make instances of it, or launch on one."""
    has_lifecycle = writer.can(Capability.LIFECYCLE)
    if has_lifecycle and not writer.state.initialized:
        initialize(writer, a, b, c)
    point, error = _INJECTIONS[a % len(_INJECTIONS)]
    writer.write(ops.InjectFailure(point, (1, 2, 1, 3)[a >> 2 & 3], error))
    askers = (launch_instance, create_instance, partition) if has_lifecycle else (launch_instance, create_instance)
    askers[(a >> 4) % len(askers)](writer, b, c & ~1, c)  # an even byte: a launch goes to an instance
