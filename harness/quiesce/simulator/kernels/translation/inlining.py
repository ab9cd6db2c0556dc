"""Functions in which threads wait become part of their callers: only a kernel can be left and entered again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.function import Function, Guard, Instruction, Label, Variable
from quiesce.simulator.kernels.ptx.operands import (
    Address,
    Group,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Texel,
    Vector,
)
from quiesce.simulator.kernels.translation.program import Program, callee_of, placed
from quiesce.simulator.kernels.translation.spin_loops import waits_by_itself

_CALLS_MAX: Final = 200
_INSTRUCTIONS_MAX: Final = 50_000
"""A kernel with more calls, or one that becomes longer, is refused: functions in functions multiply."""


def inline_waiting_functions(program: Program, function: Function) -> tuple[Function, frozenset[str]]:
    """Return a kernel in which no function that is called waits, and the memory that passed values are in."""
    known: dict[str, bool] = {}
    kept: set[str] = set()
    round_ = 0
    while place := _waiting_call(program, function, known):
        round_ += 1
        function = _inline(program, function, place - 1, round_, kept)
        if round_ > _CALLS_MAX or len(function.items) > _INSTRUCTIONS_MAX:
            raise RefusedKernel(f"functions in which threads wait make '{function.name}' too long")
    return function, frozenset(kept)


def waits(program: Program, function: Function) -> bool:
    """Say whether threads wait in a function, or in one that it calls."""
    return waits_by_itself(function) or _waiting_call(program, function, {}) != 0


def reached(program: Program, function: Function) -> Iterator[Function]:
    """Yield a function and all that it calls by name, also in others."""
    known, waiting = {function.name}, [function]
    while waiting:
        current = waiting.pop()
        yield current
        for name in filter(None, map(callee_of, current.instructions())):
            text = program.module.functions.get(name)
            if name not in known and text is not None and text.body is not None:
                waiting.append(program.parse(name))
            known.add(name)


def may_call_itself(program: Program, function: Function) -> bool:
    """Say whether a function may call itself, by its name, by its address or through others."""
    calls = [i for each in reached(program, function) for i in each.instructions() if i.opcode == "call"]
    return any(callee_of(i) in (None, function.name) for i in calls)


def _waiting_call(program: Program, function: Function, known: dict[str, bool]) -> int:
    """Return one more than the place of the first call of a function that waits; 0: there is none."""
    for place, item in enumerate(function.items):
        name = callee_of(item) if isinstance(item, Instruction) else None
        if name is not None and _function_waits(program, name, known):
            return place + 1
    return 0


def _function_waits(program: Program, name: str, known: dict[str, bool]) -> bool:
    if name not in known:
        known[name] = False  # a function that calls itself: what it does otherwise decides
        text = program.module.functions.get(name)
        if text is not None and text.body is not None:
            callee = program.parse(name)
            known[name] = waits_by_itself(callee) or _waiting_call(program, callee, known) != 0
    return known[name]


@dataclass(frozen=True, slots=True)
class _Renaming:
    """What the names of a function become in its caller."""

    suffix: str
    variables: dict[str, str] = field(default_factory=dict)

    def register(self, register: Register) -> Register:
        return Register(register.name + self.suffix, register.type)

    def symbol(self, symbol: Symbol) -> Symbol:
        return Symbol(self.variables.get(symbol.name, symbol.name), symbol.offset)

    def target(self, operand: Register | Sink) -> Register | Sink:
        return self.register(operand) if isinstance(operand, Register) else operand

    def named(self, operand: Register | Symbol) -> Register | Symbol:
        return self.register(operand) if isinstance(operand, Register) else self.symbol(operand)

    def operand(self, operand: Operand) -> Operand:
        match operand:
            case Register():
                return self.register(operand)
            case Symbol():
                return self.symbol(operand)
            case Negated(register=register):
                return Negated(self.register(register))
            case Address(base=Register() as base, offset=offset):
                return Address(self.register(base), offset)
            case Address(base=Symbol() as base, offset=offset):
                return Address(self.symbol(base), offset)
            case Texel(reference=reference, coordinates=coordinates, sampler=sampler):
                where = tuple(map(self.operand, coordinates))
                return Texel(self.named(reference), where, self.named(sampler) if sampler else None)
            case Vector(elements=elements):
                return Vector(tuple(map(self.operand, elements)))
            case Group(elements=elements):
                return Group(tuple(map(self.operand, elements)))
            case Pair(first=first, second=second):
                return Pair(self.target(first), self.target(second))
            case _:
                return operand

    def instruction(self, i: Instruction) -> Instruction:
        guard = Guard(self.register(i.guard.register), i.guard.negated) if i.guard else None
        if i.opcode == "bra":
            (label,) = i.operands
            assert isinstance(label, Symbol)
            return replace(i, guard=guard, operands=(Symbol(label.name + self.suffix),))
        if i.opcode == "brx":
            index, listed = i.operands
            assert isinstance(listed, Symbol)
            return replace(i, guard=guard, operands=(self.operand(index), Symbol(listed.name + self.suffix)))
        operands = i.operands
        prototype: tuple[Operand, ...] = ()
        named = [operand for operand in operands if not isinstance(operand, Group)]
        if i.opcode == "call" and len(named) == 2 and isinstance(operands[-1], Symbol):
            prototype = (Symbol(operands[-1].name + self.suffix),)
            operands = operands[:-1]
        return replace(i, guard=guard, operands=(*map(self.operand, operands), *prototype))


def _inline(program: Program, function: Function, place: int, number: int, kept: set[str]) -> Function:
    """Put the body of a function in the place of its call."""
    call = function.items[place]
    assert isinstance(call, Instruction)
    callee = program.parse(callee_of(call) or "")
    if program.is_told_by_caller(callee.name) and call.location[0]:
        callee = placed(callee, call.location, call.caller)
    renaming = _Renaming(f"#{number}", _passed(call, callee, function))
    kept.update(renaming.variables.values())
    variables = dict(function.variables)
    for name, variable in callee.variables.items():
        own = name + (f"#{callee.name}" if variable.space == "shared" else renaming.suffix)
        renaming.variables[name] = own
        variables[own] = replace(variable, name=own)
        if variable.space == "param":
            kept.add(own)
    end = f"end{renaming.suffix}"
    body: list[Instruction | Label] = []
    if call.guard:
        body.append(_branch(call, end, Guard(call.guard.register, not call.guard.negated)))
    for item in callee.items:
        if isinstance(item, Label):
            body.append(Label(item.name + renaming.suffix))
        elif item.opcode == "ret":
            body.append(_branch(item, end, renaming.instruction(item).guard))
        else:
            body.append(renaming.instruction(item))
    items = (*function.items[:place], *body, Label(end), *function.items[place + 1 :])
    targets = {
        name + renaming.suffix: tuple(label + renaming.suffix for label in labels)
        for name, labels in callee.branch_targets.items()
    }
    prototypes = {name + renaming.suffix: each for name, each in callee.prototypes.items()}
    return replace(
        function,
        items=items,
        variables=variables,
        branch_targets={**function.branch_targets, **targets},
        prototypes={**function.prototypes, **prototypes},
    )


def _branch(i: Instruction, label: str, guard: Guard | None) -> Instruction:
    return replace(i, opcode="bra", modifiers=(), operands=(Symbol(label),), guard=guard)


def _passed(call: Instruction, callee: Function, caller: Function) -> dict[str, str]:
    """Return the caller's memory for each parameter of a function, and for what it returns."""
    groups = [operand.elements for operand in call.operands if isinstance(operand, Group)]
    returned = groups.pop(0) if isinstance(call.operands[0], Group) else ()
    passed = groups.pop(0) if groups else ()
    found = {}
    formal = (*callee.returned, *callee.parameters)
    if len(formal) != len(returned) + len(passed):
        raise RefusedKernel(f"'{callee.name}' is called with another number of values", call.text, call.line)
    for parameter, actual in zip(formal, (*returned, *passed), strict=True):
        variable: Variable | None = caller.variables.get(actual.name) if isinstance(actual, Symbol) else None
        if variable is None or parameter.is_register or variable.bytes < parameter.bytes:
            raise RefusedKernel("a function in which threads wait is not given memory", call.text, call.line)
        found[parameter.name] = variable.name
    return found
