"""The body of a function: its blocks one after another, each instruction by the chapter that it belongs to."""

from __future__ import annotations

from quiesce.kernels.ptx.function import Function, Instruction
from quiesce.kernels.ptx.operands import Register
from quiesce.kernels.ptx.types import PREDICATE, TYPES, bits_type
from quiesce.kernels.translation.emitter import Emitter, WarpOperands
from quiesce.kernels.translation.flow import ENDS, Flow, branch_labels
from quiesce.kernels.translation.forms import require
from quiesce.kernels.translation.pointers import pointer_keeper
from quiesce.kernels.translation.shapes import EXITED, TRAPPED
from quiesce.kernels.translation.table import handler_of
from quiesce.kernels.translation.warp import YIELD

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
    handler = handler_of(i)
    if i.guard is None:
        keep = pointer_keeper(e, i)
        handler(e, i)
        keep()
        return False
    skipped = e.new_label()
    _enter_guarded(e, i, skipped)
    keep = pointer_keeper(e, i)
    handler(e, i)
    keep()
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
        if e.program.traces and target <= number:
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
                e.emit(f"store {type_.integer} {value}, ptr {e.arguments[parameter.name]}")
    e.shape.finish(e, status)


def load_register_parameters(e: Emitter, function: Function) -> None:
    """Give registers that are parameters their values."""
    for parameter in function.parameters:
        if parameter.is_register and not function.is_entry:
            type_ = bits_type(max(8, parameter.bits))
            value = e.define(f"load {type_.integer}, ptr {e.arguments[parameter.name]}")
            e.write(Register(parameter.name, type_), value, type_)
