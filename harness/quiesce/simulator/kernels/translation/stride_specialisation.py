"""Parameters that are strides: a kernel is compiled for arrays whose elements follow each other, and for all others.

Which value a stride has is known at the launch only. In the usual array it is the size of an element, and the kernel
then reads memory in order, which LLVM can vectorise. The runtime's call decides by comparing.
"""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Address, Operand, Register, Symbol
from quiesce.simulator.kernels.translation.coroutine_frames import DONE, NEXT
from quiesce.simulator.kernels.translation.data_flow import effects_of
from quiesce.simulator.kernels.translation.function_body import ATTRIBUTES
from quiesce.simulator.kernels.translation.llvm_code import (
    BLOCK,
    FRAMES,
    INDEX,
    INVARIANT,
    LANE,
    PARAMETERS,
    STATE,
    WARP,
)

_MULTIPLIED: Final = frozenset({"mul", "mad"})
_PASSED_ON: Final = frozenset({"mov", "add", "sub", "shl", "shr", "cvt", "mul", "mad", "cvta"})
_ACCESSES: Final = frozenset({"ld", "st", "ldu"})
_VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_STRIDES_MAX: Final = 8

Strides = dict[tuple[int, int], int]
"""Values by the offset of a parameter and its bits."""
USUAL: Final = "quiesce_kernel_usual"
"""The function for a block in which a stride is not what it was taken to be."""


def guess_strides(function: Function) -> Strides:
    """Return the parameters that are probably strides, and the value that each has in the usual array."""
    offsets = {each.name: each.offset for each in function.parameters}
    readers: dict[Register, list[Instruction]] = {}
    for instruction in function.instructions():
        for register in effects_of(instruction)[0]:
            readers.setdefault(register, []).append(instruction)
    found: Strides = {}
    for instruction in function.instructions():
        place = _loaded(instruction, offsets)
        target = instruction.operands[0] if instruction.operands else None
        if place is None or not isinstance(target, Register):
            continue
        sizes = _sizes_of_accesses(target, readers)
        if len(sizes) == 1:
            found[place] = sizes.pop()
    return found if len(found) <= _STRIDES_MAX else {}


def _loaded(i: Instruction, offsets: dict[str, int]) -> tuple[int, int] | None:
    """Return the place of the whole number that an instruction loads from a kernel's parameters."""
    if i.opcode != "ld" or i.modifiers != ("param",) or i.guard or len(i.types) != 1 or i.types[0].is_float:
        return None
    address = i.operands[-1]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol) or address.base.name not in offsets:
        return None
    return offsets[address.base.name] + address.offset, i.types[0].bits


def _sizes_of_accesses(stride: Register, readers: dict[Register, list[Instruction]]) -> set[int]:
    """Return the sizes of what lies at addresses that are computed by multiplying with a register."""
    products = [i for i in readers.get(stride, ()) if i.opcode in _MULTIPLIED]
    waiting = [i.operands[0] for i in products]
    seen: set[Operand] = set()
    sizes = set()
    while waiting:
        register = waiting.pop()
        if register in seen or not isinstance(register, Register):
            continue
        seen.add(register)
        for i in readers.get(register, ()):
            if i.opcode in _PASSED_ON:
                waiting.append(i.operands[0])
            elif i.opcode in _ACCESSES and i.types and any(_is_at(operand, register) for operand in i.operands):
                sizes.add(i.types[0].bytes * next((_VECTORS[word] for word in i.modifiers if word in _VECTORS), 1))
    return sizes


def _is_at(operand: Operand, register: Register) -> bool:
    return isinstance(operand, Address) and operand.base == register


def block_function(strides: Strides) -> list[str]:
    """Return a function that runs the threads of a block together, and then those that are left one after another.

    A thread may give way to others in a loop that compares and swaps; none of them is in its way, and it goes on.
    """
    lines = list(_BLOCK_BEGINS)
    for number, ((offset, bits), value) in enumerate(strides.items()):
        lines += [
            f"%guess{number}.place = getelementptr i8, ptr %parameters, i64 {offset}",
            f"%guess{number}.value = load i{bits}, ptr %guess{number}.place, align 1",
            f"%guess{number}.holds = icmp eq i{bits} %guess{number}.value, {value}",
            f"br i1 %guess{number}.holds, label %guessed{number}, label %begin",
            f"guessed{number}:",
        ]
    others = ["begin:", f"%others = call i32 @{USUAL}(ptr %context)", "ret i32 %others"] if strides else []
    return [*lines, *_BLOCK_ENDS[:-1], *others, "}"]


_BLOCK_BEGINS: Final = f"""define i32 @quiesce_kernel_block(ptr noalias nocapture readonly %context) {ATTRIBUTES} {{
entry:
%thread = alloca [64 x i8], align 16
%frames.place = getelementptr i8, ptr %context, i64 {FRAMES}
%frames = load ptr, ptr %frames.place, {INVARIANT}
%nexts = getelementptr i8, ptr %frames, i64 {NEXT}
%parameters.place = getelementptr i8, ptr %context, i64 {PARAMETERS}
%parameters = load ptr, ptr %parameters.place, {INVARIANT}
%block.x.place = getelementptr i8, ptr %context, i64 {BLOCK}
%block.x = load i32, ptr %block.x.place, {INVARIANT}, !range !1
%block.y.place = getelementptr i8, ptr %context, i64 {BLOCK + 4}
%block.y = load i32, ptr %block.y.place, {INVARIANT}, !range !1
%block.z.place = getelementptr i8, ptr %context, i64 {BLOCK + 8}
%block.z = load i32, ptr %block.z.place, {INVARIANT}, !range !1
%block.row = mul i32 %block.x, %block.y
%threads = mul i32 %block.row, %block.z""".split("\n")
_BLOCK_ENDS: Final = f"""%together = call i32 @quiesce_kernel_together(ptr %context, ptr %frames, i32 0)
%is.apart = icmp sgt i32 %together, 0
br i1 %is.apart, label %apart, label %whole
whole:
ret i32 %together
apart:
br label %one
one:
%number = phi i32 [0, %apart], [%number.next, %following]
%next.place = getelementptr i32, ptr %nexts, i32 %number
%state = load i32, ptr %next.place
%has.ended = icmp eq i32 %state, {DONE}
br i1 %has.ended, label %following, label %run
run:
%state.place = getelementptr i8, ptr %thread, i64 {STATE}
store i32 %state, ptr %state.place
%x = urem i32 %number, %block.x
%row = udiv i32 %number, %block.x
%y = urem i32 %row, %block.y
%z = udiv i32 %row, %block.y
%x.place = getelementptr i8, ptr %thread, i64 {INDEX}
store i32 %x, ptr %x.place
%y.place = getelementptr i8, ptr %thread, i64 {INDEX + 4}
store i32 %y, ptr %y.place
%z.place = getelementptr i8, ptr %thread, i64 {INDEX + 8}
store i32 %z, ptr %z.place
%lane = and i32 %number, 31
%lane.place = getelementptr i8, ptr %thread, i64 {LANE}
store i32 %lane, ptr %lane.place
%warp = lshr i32 %number, 5
%warp.place = getelementptr i8, ptr %thread, i64 {WARP}
store i32 %warp, ptr %warp.place
br label %go
go:
%end = call i32 @quiesce_kernel_thread(ptr %context, ptr %thread)
%has.failed = icmp slt i32 %end, 0
br i1 %has.failed, label %failed, label %is.left
is.left:
%gave.way = icmp sgt i32 %end, 0
br i1 %gave.way, label %go, label %following
failed:
ret i32 %end
following:
%number.next = add nuw nsw i32 %number, 1
%is.last = icmp eq i32 %number.next, %threads
br i1 %is.last, label %all, label %one
all:
ret i32 0
}}""".split("\n")
