"""Calls: of functions in the module, through an address with a prototype, and of the few that the runtime has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction, Parameter
from quiesce.simulator.kernels.ptx.operands import TYPES, Group, Operand, Register, Symbol, Type, bits_type
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import refuse, require
from quiesce.simulator.kernels.translation.llvm_code import ASSERTED

CALLS: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#control-flow-instructions-call")

_U64 = TYPES["u64"]


@CALLS.translates("call")
def call(e: Emitter, i: Instruction) -> None:
    """Translate ``call``."""
    require(i, ("uni",), operands=(1, 2, 3, 4), types=0)
    returned, callee, passed, prototype = _parts(i)
    if isinstance(callee, Symbol):
        module = e.program.module
        text = module.find(callee.name)
        signature = module.signature(text)
        if text.is_entry:
            raise refuse(i, f"'{callee.name}' is a kernel")
        if text.body is None:
            _call_runtime(e, i, callee.name, returned, passed)
            return
        target = f"@f{e.program.number_of(callee.name, i)}"
        formal_returned, formal = signature.returned, signature.parameters
    else:
        declared = e.function.prototypes.get(prototype)
        if not isinstance(callee, Register) or declared is None:
            raise refuse(i, "a call has neither a function nor a prototype")
        target = e.define(f"inttoptr i64 {e.read(callee, _U64)} to ptr")
        formal_returned, formal = declared.returned, declared.parameters
    results = _pairs(i, formal_returned, returned) if formal_returned else []  # numba declares a result of C's `void`
    _call_function(e, i, target, results, _pairs(i, formal, passed))


def _parts(i: Instruction) -> tuple[tuple[Operand, ...], Operand, tuple[Operand, ...], str]:
    operands = list(i.operands)
    returned = _take_group(operands)
    if not operands:
        raise refuse(i, "a call has no function")
    callee = operands.pop(0)
    passed = _take_group(operands)
    prototype = operands.pop(0) if operands else None
    if operands or isinstance(prototype, Group):
        raise refuse(i, "a call has too many operands")
    return returned, callee, passed, prototype.name if isinstance(prototype, Symbol) else ""


def _take_group(operands: list[Operand]) -> tuple[Operand, ...]:
    if operands and isinstance(operands[0], Group):
        group = operands.pop(0)
        return group.elements if isinstance(group, Group) else ()
    return ()


_Pair = tuple[Parameter, Operand]


def _pairs(i: Instruction, formal: Sequence[Parameter], actual: Sequence[Operand]) -> list[_Pair]:
    if len(formal) != len(actual):
        raise refuse(i, f"a function of {len(formal)} parameters is called with {len(actual)}")
    return list(zip(formal, actual, strict=True))


def _type_of(e: Emitter, parameter: Parameter) -> Type:
    if parameter.bits == 1 or parameter.bytes > 8:
        raise e.refuse("a parameter is no number")
    return bits_type(max(8, parameter.bits))


def _place(e: Emitter, parameter: Parameter, actual: Operand) -> str:
    """Return the memory that an argument is in, or gets into."""
    if isinstance(actual, Symbol) and actual.name in e.memory and not actual.offset:
        if e.function.variables[actual.name].bytes < parameter.bytes:
            raise e.refuse(f"'{actual.name.partition('@')[0]}' is too short for its parameter")
        return e.memory[actual.name]
    return e.scratch(_type_of(e, parameter).bits)


def _call_function(e: Emitter, i: Instruction, target: str, returned: list[_Pair], passed: list[_Pair]) -> None:
    places = []
    for parameter, actual in returned:
        places.append(_place(e, parameter, actual))
    for parameter, actual in passed:
        place = _place(e, parameter, actual)
        if not isinstance(actual, Symbol):
            type_ = _type_of(e, parameter)
            e.store(type_.integer, e.read(actual, type_), place)
        places.append(place)
    thread = [f"i32 {e.shape.index(e, axis)}" for axis in range(3)] + [f"i32 {e.shape.linear(e)}"]
    arguments = ", ".join(["ptr %context", *thread, *(f"ptr {place}" for place in places)])
    status = e.define(f"call i32 {target}({arguments})")
    left, stayed = e.new_label(), e.new_label()
    e.emit(f"br i1 {e.define(f'icmp eq i32 {status}, 0')}, label %{stayed}, label %{left}")
    e.place(left)
    e.shape.propagate(e, status)
    e.place(stayed)
    for (parameter, actual), place in zip(returned, places, strict=False):
        if isinstance(actual, Register):
            type_ = _type_of(e, parameter)
            e.write(actual, e.load(type_.integer, place), type_)


_RUNTIME = {"vprintf": (2, 1), "__assertfail": (5, 0), "malloc": (1, 1), "free": (1, 0)}
"""Functions that every device has: how many values they take and return."""


def _call_runtime(
    e: Emitter, i: Instruction, name: str, returned: tuple[Operand, ...], passed: tuple[Operand, ...]
) -> None:
    if name not in _RUNTIME or (len(passed), len(returned)) != _RUNTIME[name]:
        raise refuse(i, f"function '{name}' is not executed")
    values = [_value(e, each) for each in passed]
    if name == "__assertfail":
        message, file, line, function = values[:4]
        arguments = [f"i64 {message}", f"i64 {file}", f"i32 {e.cast(line, 64, 32)}", f"i64 {function}"]
        arguments.append(f"i32 {e.shape.linear(e)}")
        e.call("void", "quiesce_kernel_assert", "ptr %context", *arguments)
        e.shape.finish(e, ASSERTED)
        e.place(e.new_label())
    elif name == "vprintf":
        result = e.call("i32", "quiesce_kernel_print", "ptr %context", f"i64 {values[0]}", f"i64 {values[1]}")
        _return(e, returned[0], result, TYPES["b32"])
    elif name == "malloc":
        numbers = [f"i64 {values[0]}", f"i32 {e.program.add_site(i)}", f"i32 {e.shape.linear(e)}"]
        result = e.call("i64", "quiesce_kernel_malloc", "ptr %context", *numbers)
        _return(e, returned[0], result, _U64)
    else:
        numbers = [f"i64 {values[0]}", f"i32 {e.program.add_site(i)}", f"i32 {e.shape.linear(e)}"]
        e.call("void", "quiesce_kernel_free", "ptr %context", *numbers)


def _value(e: Emitter, actual: Operand) -> str:
    """Return an argument with 64 bits."""
    if isinstance(actual, Symbol) and actual.name in e.memory:
        bits = 8 * min(8, e.function.variables[actual.name].bytes)
        if f"b{bits}" not in TYPES:
            raise e.refuse("an argument is no number")
        return e.cast(e.load(f"i{bits}", e.memory[actual.name]), bits, 64)
    if isinstance(actual, Register):
        return e.cast(e.read(actual, actual.type), actual.type.bits, 64)
    return e.read(actual, _U64)


def _return(e: Emitter, target: Operand, value: str, type_: Type) -> None:
    if isinstance(target, Symbol) and target.name in e.memory:
        if e.function.variables[target.name].bytes < type_.bytes:
            raise e.refuse("a returned value does not fit")
        e.store(type_.integer, value, e.memory[target.name])
    else:
        e.write(target, value, type_)
