"""Which function translates an instruction: by its opcode, and by what kind of numbers it works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.translation.emitter import Emitter
from quiesce.simulator.kernels.translation.instructions import (
    asynchronous_copies,
    calls,
    comparison,
    conversion,
    floating_point,
    half_precision,
    integer,
    logic,
    matrices,
    memory,
    synchronisation,
    textures,
)
from quiesce.simulator.kernels.translation.instructions.forms import not_executed

Handler = Callable[[Emitter, Instruction], None]


def _nothing(e: Emitter, i: Instruction) -> None:
    """Translate what is for debuggers, profilers and schedulers only."""


_ANY: Final[Mapping[str, Handler]] = {
    **logic.HANDLERS,
    **comparison.HANDLERS,
    **conversion.HANDLERS,
    **memory.MOVEMENT_HANDLERS,
    **memory.HANDLERS,
    **synchronisation.ATOMIC_HANDLERS,
    **asynchronous_copies.HANDLERS,
    **integer.VIDEO_HANDLERS,
    **matrices.HANDLERS,
    **textures.HANDLERS,
    **calls.HANDLERS,
    **synchronisation.HANDLERS,
    **dict.fromkeys(("pmevent", "griddepcontrol"), _nothing),
}
_BY_KIND: Final[dict[str, Mapping[str, Handler]]] = {
    "integer": integer.HANDLERS,
    "packed": integer.PACKED_HANDLERS,
    "half": half_precision.HANDLERS,
    "float": floating_point.HANDLERS,
}


def handler_of(instruction: Instruction) -> Handler:
    """Return the function that translates an instruction. Raises RefusedKernel where there is none."""
    opcode = instruction.opcode
    found = _ANY.get(opcode) or (_BY_KIND[_kind(instruction)].get(opcode) if instruction.types else None)
    if found is None:
        raise not_executed(instruction)
    return found


def _kind(instruction: Instruction) -> str:
    type_ = instruction.types[-1]
    if type_.is_float:
        return "half" if type_.bits // type_.lanes == 16 else "float"
    return "packed" if type_.lanes == 2 else "integer"
