"""Affine evaluation: what instructions make of numbers that grow evenly with the index of a thread.

The start of a result is computed by the instruction itself, for the thread whose index is 0. Its steps follow here.
Before a loop over the threads of a block, a register is the value of its first thread and the steps to the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import (
    PREDICATE,
    TYPES,
    Address,
    Integer,
    Negated,
    Operand,
    Register,
    Special,
    Symbol,
    Type,
)
from quiesce.simulator.kernels.translation.affine import (
    NONE,
    Affine,
    Box,
    Predicate,
    Step,
    add_all,
    exact,
    intersect,
    is_negative,
    is_zero,
    multiply_all,
    shifted_right,
    step_of,
    uniform_predicate,
)
from quiesce.simulator.kernels.translation.coroutine_frames import Frames
from quiesce.simulator.kernels.translation.data_flow import effects_of, written_operands
from quiesce.simulator.kernels.translation.emitter import Emitter
from quiesce.simulator.kernels.translation.instructions.table import handler_of
from quiesce.simulator.kernels.translation.llvm_code import BLOCK, Code, LoopPart, LoopShape

Known = dict[Register, Affine | Predicate]
_U32, _U64 = TYPES["u32"], TYPES["u64"]
_SOURCES: Final = {
    **dict.fromkeys(("mov", "not", "neg", "cvt", "cvta", "abs", "popc", "clz", "ld"), (1,)),
    **dict.fromkeys(("add", "sub", "mul", "div", "rem", "shl", "shr", "and", "or", "xor", "min", "max"), (2,)),
    **dict.fromkeys(("mad", "selp", "bfe"), (3,)),
    "setp": (2, 3),
}
"""How many operands are read; an instruction with others is refused when it is translated."""
_SIZES: Final = ("%ntid", "%ctaid", "%nctaid")
_COMPARED: Final = {"lt": (0, True), "le": (1, True), "gt": (1, False), "ge": (0, False)}
"""What is taken from the difference, and whether it is then to be below 0."""
_SAME: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def reckon(e: Emitter, i: Instruction, known: Known, box: Box) -> Affine | Predicate | None:
    """Return the result of an instruction for the threads in a box; None where it is no such number."""
    target = i.operands[0] if i.operands else None
    if i.guard or not isinstance(target, Register) or "cc" in i.modifiers:
        return None
    if len(i.operands) - 1 not in _SOURCES.get(i.opcode, ()) or not i.types:
        return None
    if any(type_.is_float or type_.lanes > 1 for type_ in i.types) or len(written_operands(i)) != 1:
        return None
    if i.opcode == "ld":
        return _uniform(e, i, target, {}, box, frozenset()) if _is_parameter(e, i) else None
    found = [_value_of(e, operand, known, i.types[-1]) for operand in i.operands[1:]]
    if any(each is None for each in found):
        return None
    sources = [each for each in found if each is not None]
    conditions = frozenset(held for each in sources for held in each.conditions)
    if all(_is_uniform(each) for each in sources):
        return _uniform(e, i, target, known, box, conditions)
    numbers = [each for each in sources if isinstance(each, Affine)]
    if len(numbers) != len(sources):
        return _combine(e, i, sources, target)
    if i.opcode == "setp":
        return _compare(e, i, numbers, box)
    return _number(e, i, numbers, target, known, box)


def _is_parameter(e: Emitter, i: Instruction) -> bool:
    address = i.operands[1] if len(i.operands) == 2 else None
    if i.modifiers != ("param",) or not isinstance(address, Address) or not isinstance(address.base, Symbol):
        return False
    return e.entry_parameter(address.base, address.offset, i.types[0].bits) is not None


def _is_uniform(value: Affine | Predicate) -> bool:
    return value.is_uniform if isinstance(value, Affine) else value.value is not None


def _value_of(e: Emitter, operand: Operand, known: Known, type_: Type) -> Affine | Predicate | None:
    match operand:
        case Register():
            return known.get(operand)
        case Negated(register=register):
            held = known.get(register)
            return _opposite(e, held) if isinstance(held, Predicate) else None
        case Integer(value=value):
            return Affine(type_.bits, str(value & (1 << type_.bits) - 1) if type_.bits > 1 else str(int(bool(value))))
        case Special(name=name) if name.startswith("%tid."):
            axis = "xyz".find(name[-1])
            x, y, z = (int(number == axis) for number in range(3))
            return Affine(32, "0", (x, y, z))
        case Special(name=name) if name.startswith(_SIZES):
            return Affine(32, e.read(operand, _U32))
        case Symbol():
            return Affine(64, e.read(operand, _U64))
        case _:
            return None


def _opposite(e: Emitter, held: Predicate) -> Predicate:
    value = None if held.value is None else e.define(f"xor i1 {held.value}, true")
    return Predicate(held.outside, held.inside, held.conditions, value)


def _start(e: Emitter, i: Instruction, target: Register, known: Known) -> str:
    """Return what the instruction gives to the thread whose index is 0."""
    e.known.clear()
    for register in effects_of(i)[0]:
        value = known[register]
        start = value.start if isinstance(value, Affine) else value.value
        if start is not None:
            e.known[register] = start
    e.instruction = i
    handler_of(i)(e, i)
    return e.known[target]


def _uniform(
    e: Emitter, i: Instruction, target: Register, known: Known, box: Box, conditions: frozenset[str]
) -> Affine | Predicate:
    start = _start(e, i, target, known)
    if target.type == PREDICATE:
        return uniform_predicate(e, start, box, conditions)
    return Affine(target.type.bits, start, NONE, conditions)


def _combine(e: Emitter, i: Instruction, sources: list[Affine | Predicate], target: Register) -> Predicate | None:
    """Return a condition made of conditions."""
    held = [each for each in sources if isinstance(each, Predicate)]
    if target.type != PREDICATE or len(held) != len(sources):
        return None
    if i.opcode in ("mov", "not") and len(held) == 1:
        return held[0] if i.opcode == "mov" else _opposite(e, held[0])
    if i.opcode not in ("and", "or") or len(held) != 2:
        return None
    first, second = held
    conditions = first.conditions | second.conditions
    boxes = (first.inside, second.inside) if i.opcode == "and" else (first.outside, second.outside)
    if boxes[0] is None or boxes[1] is None:
        return None
    both = intersect(e, boxes[0], boxes[1])
    return Predicate(both, None, conditions) if i.opcode == "and" else Predicate(None, both, conditions)


def _compare(e: Emitter, i: Instruction, numbers: list[Affine], box: Box) -> Predicate | None:
    names = [_SAME.get(each, each) for each in i.modifiers]
    if len(names) != 1 or len(numbers) != 2 or not isinstance(i.operands[0], Register):
        return None
    is_signed = i.types[-1].is_signed
    first, second = (exact(e, number, is_signed, box) for number in numbers)
    start = e.define(f"sub i64 {first.start}, {second.start}")
    steps = add_all(e, first.steps, second.steps, -1)
    conditions = first.conditions | second.conditions
    if names[0] in ("eq", "ne"):
        held = is_zero(e, Affine(64, start, steps, conditions), box)
        return held if held is None or names[0] == "eq" else _opposite(e, held)
    if names[0] not in _COMPARED:
        return None
    less, is_below = _COMPARED[names[0]]
    start = e.define(f"sub i64 {start}, {less}") if less else start
    held = is_negative(e, Affine(64, start, steps, conditions), box)
    return held if is_below else _opposite(e, held)


def _number(
    e: Emitter, i: Instruction, numbers: list[Affine], target: Register, known: Known, box: Box
) -> Affine | None:
    bits, type_ = target.type.bits, i.types[-1]
    by = i.operands[-1]
    if i.opcode == "shr" and type_.is_signed and bits == 64 and isinstance(by, Integer) and 0 < by.value < bits:
        return shifted_right(e, numbers[0], by.value, _start(e, i, target, known), box)
    if i.opcode in ("and", "shr"):
        found = _masked(e, i, numbers)
    elif i.opcode in ("mul", "mad"):
        found = _multiplied(e, i, numbers, box)
    elif i.opcode == "cvt" and not i.modifiers:
        is_wider = i.types[0].bits > type_.bits
        found = exact(e, numbers[0], type_.is_signed, box) if is_wider else numbers[0]
    else:
        found = _moved(e, i, numbers)
    if found is None or bits not in (32, 64):
        return None
    return Affine(bits, _start(e, i, target, known), found.steps, found.conditions)


def _masked(e: Emitter, i: Instruction, numbers: list[Affine]) -> Affine | None:
    """Return a number that is masked with 0 or shifted by 0, which only the launch knows."""
    first, second = numbers
    if not second.is_uniform and i.opcode == "and":
        first, second = second, first
    if not second.is_uniform:
        return None
    held = e.define(f"icmp eq i{second.bits} {second.start}, 0")
    steps = NONE if i.opcode == "and" else first.steps
    return Affine(64, first.start, steps, first.conditions | second.conditions | {held})


def _multiplied(e: Emitter, i: Instruction, numbers: list[Affine], box: Box) -> Affine | None:
    if i.modifiers not in (("lo",), ("wide",)):
        return None
    first, second = numbers[:2]
    if i.modifiers == ("wide",):
        first, second = (exact(e, each, i.types[-1].is_signed, box) for each in (first, second))
    if not second.is_uniform:
        first, second = second, first
    if not second.is_uniform:
        return None
    steps = multiply_all(e, first.steps, _factor(e, second))
    conditions = first.conditions | second.conditions
    for added in numbers[2:]:
        steps, conditions = add_all(e, steps, added.steps), conditions | added.conditions
    return Affine(64, second.start, steps, conditions)


def _factor(e: Emitter, number: Affine) -> Step:
    start = step_of(number.start)
    return start if isinstance(start, int) else e.cast(start, number.bits, 64, signed=True)


def _moved(e: Emitter, i: Instruction, numbers: list[Affine]) -> Affine | None:
    """Return the steps of an instruction whose result grows with its sources."""
    first = numbers[0]
    if i.opcode == "cvta" or (i.opcode == "mov" and not i.modifiers):
        return first
    if i.modifiers:
        return None
    if i.opcode in ("add", "sub"):
        steps = add_all(e, first.steps, numbers[1].steps, 1 if i.opcode == "add" else -1)
        return Affine(64, first.start, steps, first.conditions | numbers[1].conditions)
    if i.opcode == "neg":
        return Affine(64, first.start, multiply_all(e, first.steps, -1), first.conditions)
    by = i.operands[2] if i.opcode == "shl" else None
    if not isinstance(by, Integer) or not 0 <= by.value < i.types[-1].bits:
        return None
    return Affine(64, first.start, multiply_all(e, first.steps, 1 << by.value), first.conditions)


class FirstThread(LoopPart):
    """The thread whose index is 0 on every axis, in front of the loop of another shape."""

    def index(self, code: Code, axis: int) -> str:
        """Return 0."""
        return "0"

    def linear(self, code: Code) -> str:
        """Return 0."""
        return "0"


class Again:
    """Finds what is known of registers where threads go on in the middle of a function."""

    def __init__(self, e: Emitter, frames: Frames, shape: LoopShape) -> None:
        self._e, self._frames, self._shape = e, frames, shape
        self.memory: list[str] = []
        """What reserves the memory that this needs."""

    def known(self, live: tuple[Register, ...], shared: Mapping[Register, str]) -> Known:
        """Return the numbers among the registers that are live there; ``shared``: those that all threads share."""
        e, frames = self._e, self._frames
        known: Known = {}
        kept = frames.kept(live)
        with e.within(replace(e.around, shape=FirstThread(self._shape))):
            box = whole_block(e)
            for i in frames.recomputed.instructions(each for each in live if each not in kept):
                value, target = reckon(e, i, known, box), i.operands[0]
                if value is not None and isinstance(target, Register):
                    known[target] = value
        for register in kept:
            bits = register.type.bits
            if register in shared:
                start = e.cast(shared[register], max(bits, 8), bits)
                known[register] = uniform_predicate(e, start, box) if bits == 1 else Affine(bits, start)
            elif bits in (32, 64) and not register.type.is_float:
                known[register] = self._line(register)
        return known

    def _line(self, register: Register) -> Affine:
        """Return a register that is kept in an array over the threads, if it grows evenly there."""
        e, bits = self._e, register.type.bits
        place = f"%{e.new_label()}"
        self.memory.append(f"{place} = alloca [3 x i64]")
        array = e.byte_offset("%frames", self._frames.place_of(register))
        arguments = ("ptr %context", f"ptr {array}", f"i32 {bits // 8}", f"ptr {place}")
        answer = e.call("i32", "quiesce_kernel_line", *arguments, attributes="nounwind")
        steps = [e.load("i64", e.byte_offset(place, 8 * axis)) for axis in range(3)]
        conditions = [e.define(f"icmp ne i32 {answer}, 0")]
        start = e.load(f"i{bits}", array)
        if _reads_index(e.function, "yz"):
            return Affine(bits, start, (steps[0], steps[1], steps[2]), frozenset(conditions))
        conditions += [e.define(f"icmp eq i64 {step}, 0") for step in steps[1:]]
        return Affine(bits, start, (steps[0], 0, 0), frozenset(conditions))


def _reads_index(function: Function, axes: str) -> bool:
    """Say whether a function reads the index of its thread on one of some axes."""
    names = [each.name for i in function.instructions() for each in i.operands if isinstance(each, Special)]
    return any(name.startswith("%tid.") and name[-1] in axes for name in names)


def whole_block(e: Emitter) -> Box:
    """Return the box of all threads."""
    x, y, z = ((0, e.cast(e.shape.context(e, BLOCK + 4 * axis, "i32"), 32, 64)) for axis in range(3))
    return x, y, z
