"""How the text of every function begins: its memory, and registers that are read before they are written."""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Function
from quiesce.kernels.translation.code import INVARIANT
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.liveness import Liveness
from quiesce.kernels.translation.pointers import find_pointers
from quiesce.kernels.translation.program import Program
from quiesce.kernels.translation.shapes import BLOCK, PARAMETERS, LoopShape, Shape
from quiesce.kernels.translation.suspension import ThreadSuspension

ATTRIBUTES: Final = "nounwind null_pointer_is_valid"


def prepare(program: Program, function: Function, shape: Shape) -> Emitter:
    """Return what writes the body of a function."""
    e = Emitter(program, function, shape)
    e.kept_pointers = find_pointers(function)
    return e


def reserve_memory(
    e: Emitter, function: Function, suspension: ThreadSuspension | None, kept: frozenset[str] = frozenset()
) -> list[str]:
    """Return the lines that make the local and the parameter memory of a function; ``kept`` outlasts a wait."""
    lines = []
    for number, variable in enumerate(function.variables.values()):
        if variable.space not in ("local", "param"):
            continue
        name = e.memory[variable.name] = f"%m{number}"
        e.program.add_local(variable)
        if suspension is not None and (variable.space == "local" or variable.name in kept):
            lines.append(f"{name} = getelementptr i8, ptr %thread, i64 {suspension.reserve(variable)}")
        else:
            alignment = min(max(variable.alignment, 8), 128)
            lines.append(f"{name} = alloca [{max(1, variable.bytes)} x i8], align {alignment}")
    return lines


def clear(e: Emitter, liveness: Liveness) -> None:
    """Give registers that may be read before they are written a value that is the same in every run."""
    for register in liveness.at_entry():
        e.write(register, "0", register.type)
        if e.has_pointer(register):
            e.emit(f"store ptr null, ptr {e.pointer_slot(register)}")


def write_values_before(e: Emitter, shape: LoopShape) -> None:
    """Write the values that are the same for every thread."""
    if shape.parameters:
        shape.context(e, PARAMETERS, "ptr")
    for (offset, type_), name in shape.before.items():
        extra = ", !range !1" if BLOCK <= offset < BLOCK + 12 else ""
        if type_ == "ptr" and offset == PARAMETERS:
            extra = ", !dereferenceable !2, !align !3"
        e.emit(f"{name} = load {type_}, ptr {e.byte_offset('%context', offset)}, {INVARIANT}{extra}")
    for (offset, bits), name in shape.parameters.items():
        pointer = e.byte_offset(f"%c{PARAMETERS}.ptr", offset)
        e.emit(f"{name} = load i{bits}, ptr {pointer}, align 1, {INVARIANT}")
    e.emit(f"%rows = mul i32 %c{BLOCK + 4}.i32, %c{BLOCK + 8}.i32")
    e.emit(f"%threads.narrow = mul i32 %rows, %c{BLOCK}.i32")
    e.emit("%threads = zext i32 %threads.narrow to i64")
