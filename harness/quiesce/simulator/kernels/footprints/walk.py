"""A walk through a function, block by block: what each access to memory uses, and under which conditions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from quiesce.simulator.kernels.footprints.evaluation import Condition, Evaluation, Names, Values
from quiesce.simulator.kernels.footprints.forms import PRIVATE, Atom, AtomKind, Form, Forms
from quiesce.simulator.kernels.footprints.loops import Loop, Order, order_of
from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Address, Register, Vector
from quiesce.simulator.kernels.translation.control_flow import ENDS, Flow, branch_labels, flow_of
from quiesce.simulator.kernels.translation.data_flow import effects_of

_BLOCKS_MAX: Final = 400
_INSTRUCTIONS_MAX: Final = 6_000
_BLOCKS_OWN: Final = frozenset({"shared", "shared::cta", "local", "param", "const"})


class Use(IntEnum):
    """How memory is used; ``native/kernels/footprints.h`` has the same numbers."""

    LOAD = 0
    STORE = 1
    CHANGE = 2
    """By an atomic operation whose result nobody reads."""


@dataclass(frozen=True, slots=True)
class Access:
    """What the threads of a launch do in one instruction."""

    use: Use
    place: Form
    bytes: int
    operation: str = ""
    """Of a change: what gives the same in any order with others that have this name."""
    conditions: frozenset[Condition] = frozenset()
    entered: frozenset[int] = frozenset()
    """The loops that its threads have entered."""


@dataclass(slots=True)
class _State:
    values: Values = field(default_factory=dict)
    conditions: frozenset[Condition] = frozenset()
    entered: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Round:
    """What is known of a loop: the values of registers where it begins, first and after a round, and conditions."""

    loop: Loop
    first: dict[Atom, Form]
    next: dict[Atom, tuple[Form, ...]]
    conditions: frozenset[Condition]
    """What holds where it is entered."""
    again: frozenset[Condition]
    """What holds where it goes back."""


@dataclass(frozen=True, slots=True)
class Walked:
    """What the walk has found."""

    forms: Forms
    accesses: tuple[Access, ...]
    rounds: tuple[Round, ...]
    """Of outer loops before those inside."""


class TooLong(Exception):
    """The function has too many blocks, or its loops are not understood."""


class _Walk:
    def __init__(self, function: Function, flow: Flow, order: Order, names: Names) -> None:
        self.forms = Forms()
        self.accesses: list[Access] = []
        self._function = function
        self._flow = flow
        self._order = order
        self._evaluation = Evaluation(self.forms, names)
        self._ends: dict[int, _State] = {}
        self._carried: dict[int, dict[Register, Atom]] = {}
        self._begins: dict[int, _State] = {}
        self._numbers: dict[Register, int] = {}

    def run(self) -> Walked:
        for block in self._order.blocks:
            state = self._begin(block)
            for i in self._flow.blocks[block].instructions:
                self._see(i, state)
            self._ends[block] = state
        rounds = tuple(self._round(self._order.loops[each]) for each in self._order.blocks if each in self._order.loops)
        return Walked(self.forms, tuple(dict.fromkeys(self.accesses)), rounds)

    def _begin(self, block: int) -> _State:
        loop = self._order.loops.get(block)
        sources = [each for each in self._order.sources[block] if loop is None or each not in loop.backs]
        state = self._join([self._on_the_way(source, block) for source in sources])
        if loop is None:
            return state
        self._begins[block] = replace(state, values=dict(state.values))
        changed = {
            register
            for each in loop.blocks
            for i in self._flow.blocks[each].instructions
            for register in effects_of(i)[1]
        }
        carried = self._carried[block] = {}
        for register in changed:
            before = state.values.pop(register, None)
            if isinstance(before, Form):
                number = self._numbers.setdefault(register, len(self._numbers))
                carried[register] = (AtomKind.CARRIED, block, number)
                state.values[register] = replace(self.forms.atom(carried[register]), bases=before.bases)
        state.entered |= {block}
        return state

    def _on_the_way(self, source: int, target: int) -> _State:
        """Return what holds on the way from one block to another."""
        end = self._ends[source]
        last = self._flow.blocks[source].instructions[-1] if self._flow.blocks[source].instructions else None
        if last is None or last.guard is None or last.opcode not in ENDS or last.opcode == "brx":
            return end
        predicate = self._evaluation.predicate(last.guard.register, end.values)
        held = predicate.opposite if last.guard.negated else predicate
        is_taken = last.opcode == "bra" and self._flow.labels[branch_labels(self._function, last)[0]] == target
        is_next = target == source + 1
        if is_taken and is_next:
            return end
        return replace(end, conditions=end.conditions | (held.when if is_taken else held.unless))

    def _join(self, states: list[_State]) -> _State:
        if not states:
            return _State()
        first, *others = states
        values = dict(first.values)
        for register, value in first.values.items():
            found = [other.values.get(register) for other in others]
            if all(each == value for each in found):
                continue
            if isinstance(value, Form) and all(isinstance(e, Form) and e.bases == value.bases for e in found):
                values[register] = self.forms.anything(value)
            else:
                del values[register]
        conditions, entered = first.conditions, first.entered
        for other in others:
            conditions &= other.conditions
            entered &= other.entered
        return _State(values, conditions, entered)

    def _see(self, i: Instruction, state: _State) -> None:
        access = self._access(i, state)
        if access is not None:
            self.accesses.append(access)
        value = self._evaluation.evaluate(i, state.values)
        for register in effects_of(i)[1]:
            state.values.pop(register, None)
            if value is not None:
                state.values[register] = value

    def _access(self, i: Instruction, state: _State) -> Access | None:
        address = next((each for each in i.operands if isinstance(each, Address)), None)
        uses = {"ld": Use.LOAD, "ldu": Use.LOAD, "st": Use.STORE, "red": Use.CHANGE, "atom": Use.CHANGE}
        if i.opcode not in uses or address is None or not _BLOCKS_OWN.isdisjoint(i.modifiers):
            return None
        place = self._evaluation.place(address, state.values)
        if "global" not in i.modifiers and place.bases == {PRIVATE}:
            return None
        count = next((len(each.elements) for each in i.operands if isinstance(each, Vector)), 1)
        conditions = state.conditions
        if i.guard is not None:
            predicate = self._evaluation.predicate(i.guard.register, state.values)
            conditions |= predicate.unless if i.guard.negated else predicate.when
        use = uses[i.opcode]
        kinds = (i.types[-1].name, *(each for each in i.modifiers if each in CHANGES))
        operation = " ".join(kinds) if use == Use.CHANGE else ""
        return Access(use, place, i.types[-1].bytes * count, operation, conditions, state.entered)

    def _round(self, loop: Loop) -> Round:
        begin, carried = self._begins[loop.header], self._carried[loop.header]
        ends = [self._on_the_way(source, loop.header) for source in loop.backs]
        first, following = {}, {}
        for register, atom in carried.items():
            value = begin.values[register]
            assert isinstance(value, Form)
            first[atom] = value
            found = [end.values.get(register) for end in ends]
            following[atom] = tuple(e if isinstance(e, Form) else self.forms.anything() for e in found)
        again = frozenset.intersection(*(end.conditions for end in ends))
        return Round(loop, first, following, begin.conditions, again - begin.conditions)


CHANGES: Final = frozenset({"add", "min", "max", "and", "or", "xor"})
"""Atomic operations that give the same in any order."""


def walk(function: Function, names: Names) -> Walked:
    """Return what the accesses of a function use. Raises TooLong."""
    flow = flow_of(function)
    if len(flow.blocks) > _BLOCKS_MAX or len(function.items) > _INSTRUCTIONS_MAX:
        raise TooLong
    order = order_of(flow)
    if order is None:
        raise TooLong
    return _Walk(function, flow, order, names).run()
