"""Strangers: a sequence that names what was never made. Everything is refused, and the backend works afterwards."""

from __future__ import annotations

from typing import Final

from quiesce import operations as ops
from quiesce.backend import Capability, Description, DeviceProfile
from quiesce.cases.case import Case
from quiesce.conformance.obligations import obliging
from quiesce.generation.sequence import GeneratedSequence
from quiesce.operations import Operation

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
