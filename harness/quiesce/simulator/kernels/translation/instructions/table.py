"""Which function translates an instruction: by its opcode, and by what kind of numbers it works on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter, Handler
from quiesce.simulator.kernels.translation.instructions.asynchronous_copies import BARRIERS_IN_MEMORY, COPIES
from quiesce.simulator.kernels.translation.instructions.calls import CALLS
from quiesce.simulator.kernels.translation.instructions.comparison import COMPARISON
from quiesce.simulator.kernels.translation.instructions.conversion import CONVERSION
from quiesce.simulator.kernels.translation.instructions.floating_point import FLOATING_POINT
from quiesce.simulator.kernels.translation.instructions.forms import not_executed
from quiesce.simulator.kernels.translation.instructions.half_precision import HALF_PRECISION
from quiesce.simulator.kernels.translation.instructions.integer import INTEGER, PACKED
from quiesce.simulator.kernels.translation.instructions.logic import LOGIC
from quiesce.simulator.kernels.translation.instructions.matrices import MATRICES
from quiesce.simulator.kernels.translation.instructions.memory import MEMORY
from quiesce.simulator.kernels.translation.instructions.synchronisation import SYNCHRONISATION
from quiesce.simulator.kernels.translation.instructions.textures import SURFACES, TEXTURES
from quiesce.simulator.kernels.translation.instructions.video import SIMD_VIDEO, VIDEO
from quiesce.simulator.kernels.translation.pointers import pointer_keeper

_MISCELLANEOUS: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#miscellaneous-instructions")


@_MISCELLANEOUS.translates("pmevent", "griddepcontrol")
def _nothing(e: Emitter, i: Instruction) -> None:
    """Translate what is for debuggers, profilers and schedulers only."""


_CHAPTERS: Final = (
    *(LOGIC, COMPARISON, CONVERSION, MEMORY, COPIES, BARRIERS_IN_MEMORY, SYNCHRONISATION, MATRICES, TEXTURES),
    *(SURFACES, CALLS, VIDEO, SIMD_VIDEO, _MISCELLANEOUS),
)
_ANY: Final[Mapping[str, Handler]] = {
    opcode: handler for chapter in _CHAPTERS for opcode, handler in chapter.handlers.items()
}
_BY_KIND: Final = {"integer": INTEGER, "packed": PACKED, "half": HALF_PRECISION, "float": FLOATING_POINT}


def handler_of(instruction: Instruction) -> Handler:
    """Return the function that translates an instruction. Raises RefusedKernel where there is none."""
    opcode = instruction.opcode
    found = _ANY.get(opcode) or (_BY_KIND[_kind(instruction)].handlers.get(opcode) if instruction.types else None)
    if found is None:
        raise not_executed(instruction)
    return found


def translate_instruction(e: Emitter, i: Instruction) -> None:
    """Write an instruction, whatever its guard is, and keep the pointer of an address that it makes."""
    keep = pointer_keeper(e, i)
    handler_of(i)(e, i)
    keep()


def _kind(instruction: Instruction) -> str:
    type_ = instruction.types[-1]
    if type_.is_float:
        return "half" if type_.bits // type_.lanes == 16 else "float"
    return "packed" if type_.lanes == 2 else "integer"
