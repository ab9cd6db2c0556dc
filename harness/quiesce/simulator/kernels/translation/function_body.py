"""A function's text: its prologue, then its blocks one after another, each instruction by the chapter it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction, require_memory
from quiesce.simulator.kernels.ptx.operands import PREDICATE, TYPES, Register, bits_type
from quiesce.simulator.kernels.translation.canonical_nans import float_results
from quiesce.simulator.kernels.translation.control_flow import ENDS, Flow, branch_labels, flow_of
from quiesce.simulator.kernels.translation.coroutine_frames import ThreadSuspension
from quiesce.simulator.kernels.translation.data_flow import liveness_of
from quiesce.simulator.kernels.translation.emitter import Around, Emitter, Suspension, WarpOperands
from quiesce.simulator.kernels.translation.inlining import may_call_itself
from quiesce.simulator.kernels.translation.instructions.forms import require
from quiesce.simulator.kernels.translation.instructions.synchronisation import YIELD
from quiesce.simulator.kernels.translation.instructions.table import translate_instruction
from quiesce.simulator.kernels.translation.llvm_code import (
    BLOCK,
    EXITED,
    INVARIANT,
    PARAMETERS,
    TRAPPED,
    CalledShape,
    LoopShape,
    Shape,
)
from quiesce.simulator.kernels.translation.pointers import find_pointers
from quiesce.simulator.kernels.translation.program import LOCAL_BYTES_MAX, Program
from quiesce.simulator.kernels.translation.subnormals import flushed_registers

_U32 = TYPES["u32"]


def translate_blocks(e: Emitter, flow: Flow) -> None:
    """Write all blocks of a function; the first one is that of number 0."""
    for number in range(len(flow.blocks)):
        e.place(e.block_label(number))
        translate_block(e, flow, number)


def translate_block(e: Emitter, flow: Flow, number: int, first: int = 0, end: int | None = None) -> None:
    """Write a block from one of its instructions on; up to another one, if nothing comes to the end of the block."""
    ended = False
    for place, instruction in enumerate(flow.blocks[number].instructions[first:end], start=first):
        e.instruction = instruction
        e.position = (number, place)
        ended = _translate(e, flow, instruction, number)
    if not ended and end is None:
        _go_on(e, flow, number)


def _go_on(e: Emitter, flow: Flow, number: int) -> None:
    if number + 1 < len(flow.blocks):
        e.emit(f"br label %{e.block_label(number + 1)}")
    else:
        finish(e, 0)


def _translate(e: Emitter, flow: Flow, i: Instruction, number: int) -> bool:
    """Write one instruction; say whether it ends its block."""
    if i.opcode in ENDS:
        _end(e, flow, i, number)
        return True
    if i.guard is None:
        translate_instruction(e, i)
        return False
    skipped = e.new_label()
    _enter_guarded(e, i, skipped)
    translate_instruction(e, i)
    e.emit(f"br label %{skipped}")
    e.place(skipped)
    return False


def _enter_guarded(e: Emitter, i: Instruction, otherwise: str) -> None:
    """Begin what runs only where the guard holds."""
    assert i.guard is not None
    held = e.new_label()
    first, second = (otherwise, held) if i.guard.negated else (held, otherwise)
    e.emit(f"br i1 {e.read(i.guard.register, PREDICATE)}, label %{first}, label %{second}")
    e.place(held)


def _end(e: Emitter, flow: Flow, i: Instruction, number: int) -> None:
    if i.guard:
        otherwise = e.new_label()
        _enter_guarded(e, i, otherwise)
    if i.opcode == "bra":
        require(i, ("uni",), operands=1, types=0)
        target = flow.labels[branch_labels(e.function, i)[0]]
        if e.suspension is not None:
            if id(i) in e.spinning:
                e.suspension.wait(e, YIELD, WarpOperands(), ())
            e.suspension.go_back(e, target)
        if e.program.variant.traced and target <= number:
            numbers = (f"i32 {e.program.add_site(i)}", f"i32 {e.shape.linear(e)}")
            e.call("void", "quiesce_kernel_round", "ptr %context", *numbers)
        e.emit(f"br label %{e.block_label(target)}")
    elif i.opcode == "brx":
        _branch_by_index(e, flow, i)
    else:
        require(i, ("uni",) if i.opcode == "ret" else (), operands=0, types=0)
        finish(e, {"ret": 0, "exit": EXITED, "trap": TRAPPED}[i.opcode])
    if i.guard:
        e.place(otherwise)
        _go_on(e, flow, number)


def _branch_by_index(e: Emitter, flow: Flow, i: Instruction) -> None:
    require(i, ("idx", "uni"), operands=2, types=0)
    blocks = [flow.labels[label] for label in branch_labels(e.function, i)]
    index = e.read(i.operands[0], _U32)
    labels = [e.block_label(block) for block in blocks]
    cases = " ".join(f"i32 {case}, label %{label}" for case, label in enumerate(labels))
    e.emit(f"switch i32 {index}, label %{labels[0]} [{cases}]")


def finish(e: Emitter, status: int) -> None:
    """Return from the function, with what it returns in registers."""
    if not status and not e.function.is_entry:
        for parameter in e.function.returned:
            if parameter.is_register:
                type_ = bits_type(max(8, parameter.bits))
                value = e.read(Register(parameter.name, type_), type_)
                e.store(type_.integer, value, e.arguments[parameter.name])
    e.shape.finish(e, status)


def load_register_parameters(e: Emitter, function: Function) -> None:
    """Give registers that are parameters their values."""
    for parameter in function.parameters:
        if parameter.is_register and not function.is_entry:
            type_ = bits_type(max(8, parameter.bits))
            value = e.load(type_.integer, e.arguments[parameter.name])
            e.write(Register(parameter.name, type_), value, type_)


ATTRIBUTES: Final = "nounwind null_pointer_is_valid"


def prepare(program: Program, function: Function, shape: Shape, suspension: Suspension | None = None) -> Emitter:
    """Return what writes the body of a function."""
    known = find_pointers(function), flushed_registers(function), float_results(function)
    return Emitter(program, function, Around(shape, suspension), *known)


def reserve_memory(
    e: Emitter, function: Function, suspension: ThreadSuspension | None, kept: frozenset[str] = frozenset()
) -> list[str]:
    """Return the lines that make the local and the parameter memory of a function; ``kept`` outlasts a wait."""
    lines = []
    for number, variable in enumerate(function.variables.values()):
        if variable.space not in ("local", "param"):
            continue
        name = e.memory[variable.name] = f"%m{number}"
        require_memory(variable, LOCAL_BYTES_MAX)
        if suspension is not None and (variable.space == "local" or variable.name in kept):
            lines.append(f"{name} = getelementptr i8, ptr %thread, i64 {suspension.reserve(variable)}")
        else:
            alignment = min(max(variable.alignment, 8), 128)
            lines.append(f"{name} = alloca [{max(1, variable.bytes)} x i8], align {alignment}")
    return lines


def count_memory(program: Program, function: Function) -> None:
    """Count the memory of a function that every thread has."""
    own = (each for each in function.variables.values() if each.space in ("local", "param"))
    program.local_bytes += sum(variable.bytes for variable in own)


def clear(e: Emitter, registers: Iterable[Register]) -> None:
    """Give registers that may be read before they are written a value that is the same in every run."""
    for register in registers:
        e.write(register, "0", register.type)
        if e.has_pointer(register):
            e.store("ptr", "null", e.pointer_slot(register))


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


def called_functions(program: Program) -> list[str]:
    """Return all functions that are called or whose address is taken; each may call for more."""
    lines = []
    done = 0
    while done < len(program.numbers):
        called = list(program.numbers)[done]
        lines += _called(program, program.function_of(called), done)
        done += 1
    return lines


def _called(program: Program, function: Function, number: int) -> list[str]:
    stack_bytes = _stack_bytes(function) if may_call_itself(program, function) else 0
    e = prepare(program, function, CalledShape(stack_bytes))
    memory = reserve_memory(e, function, None)
    count_memory(program, function)
    flow = flow_of(function)
    e.place("start")
    if stack_bytes:
        numbers = (f"i32 {stack_bytes}", f"i32 {program.add_site(next(iter(function.instructions())))}", "i32 %linear")
        e.call("void", "quiesce_kernel_enter", "ptr %context", *numbers)
    clear(e, liveness_of(flow).at_entry())
    load_register_parameters(e, function)
    e.emit("br label %B0")
    translate_blocks(e, flow)
    body = e.lines
    arguments = [
        f"ptr {name}" for name in (*_names("%returned", function.returned), *_names("%argument", function.parameters))
    ]
    thread = ["ptr %context", *(f"i32 %{axis}" for axis in "xyz"), "i32 %linear"]
    return [
        f"define internal i32 @f{number}({', '.join([*thread, *arguments])}) {ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        "br label %start",
        *body,
        "}",
    ]


_RETURN_BYTES = 8


def _stack_bytes(function: Function) -> int:
    """Return how much stack a call needs on any device at least: compilers keep some registers there as well."""
    local = [each.bytes for each in function.variables.values() if each.space == "local"]
    return _RETURN_BYTES + sum(-(-bytes_ // 8) * 8 for bytes_ in local)


def _names(prefix: str, parameters: tuple[object, ...]) -> list[str]:
    return [f"{prefix}{number}" for number in range(len(parameters))]
