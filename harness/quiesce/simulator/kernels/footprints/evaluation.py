"""What one instruction makes of forms: arithmetic of whole numbers, addresses, and comparisons.

https://docs.nvidia.com/cuda/parallel-thread-execution/#integer-arithmetic-instructions
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from quiesce.simulator.kernels.footprints.forms import PRIVATE, AtomKind, Form, Forms, Range, SizeKind
from quiesce.simulator.kernels.ptx.function import Instruction, Parameter, Variable
from quiesce.simulator.kernels.ptx.operands import Address, Integer, Negated, Operand, Register, Special, Symbol, Type


@dataclass(frozen=True, slots=True)
class Condition:
    """A form that is at most 0, or (``differs``) another number than 0."""

    form: Form
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Predicate:
    """What holds where a predicate is true, and what where it is false."""

    when: frozenset[Condition] = frozenset()
    unless: frozenset[Condition] = frozenset()

    @property
    def opposite(self) -> Predicate:
        """Return the opposite."""
        return Predicate(self.unless, self.when)


Value = Form | Predicate
Values = dict[Register, Value]
_AXES: Final = "xyz"
_WIDTHS: Final = (32, 64)
_WARP: Final = 32


@dataclass(slots=True)
class Names:
    """What names stand for: parameters, and variables by the numbers that the object has for them."""

    parameters: dict[str, Parameter]
    variable_of: Callable[[str], Variable | None]
    number_of: Callable[[Variable], int]


class Evaluation:
    """Evaluates instructions, one by one."""

    def __init__(self, forms: Forms, names: Names) -> None:
        self.forms = forms
        self._sizes = forms.sizes
        self._names = names

    def evaluate(self, i: Instruction, values: Values) -> Value | None:
        """Return the result of an instruction; None where nothing is known of it."""
        handler = _HANDLERS.get(i.opcode)
        if handler is None or not i.types or not i.operands or not isinstance(i.operands[0], Register):
            return None
        if i.guard or "cc" in i.modifiers:
            return None
        if i.types[0].kind == "predicate":
            return self._logic(i, values)
        if any(each.is_float or each.lanes > 1 or each.bits not in _WIDTHS for each in i.types):
            return None
        return handler(self, i, values)

    def predicate(self, register: Register, values: Values) -> Predicate:
        """Return what is known of a predicate."""
        value = values.get(register)
        return value if isinstance(value, Predicate) else Predicate()

    def operand(self, operand: Operand, type_: Type, values: Values) -> Form:
        """Return what an operand is."""
        match operand:
            case Register():
                value = values.get(operand)
                return value if isinstance(value, Form) else self.forms.anything()
            case Integer(value=value):
                return self.forms.literal(value - (1 << 32) if type_.bits == _WIDTHS[0] and value >= 1 << 31 else value)
            case Special(name=name):
                return self._special(name)
            case Symbol(name=name, offset=offset):
                return self._address_of(name, offset)
            case _:
                return self.forms.anything()

    def place(self, address: Address, values: Values) -> Form:
        """Return an address."""
        base = address.base
        if isinstance(base, Integer):
            return self.forms.literal(base.value)
        if isinstance(base, Symbol):
            return self._address_of(base.name, base.offset + address.offset)
        value = values.get(base)
        found = value if isinstance(value, Form) else self.forms.anything()
        return self.forms.add(found, self.forms.literal(address.offset))

    def _special(self, name: str) -> Form:
        word, _, axis = name.removeprefix("%").partition(".")
        number = _AXES.find(axis) if axis else 0
        if word == "ntid":
            return self.forms.size(self._sizes.add(SizeKind.BLOCK, number))
        if word == "nctaid":
            return self.forms.size(self._sizes.add(SizeKind.GRID, number))
        if word in ("tid", "ctaid"):
            return self.forms.atom((AtomKind.THREAD if word == "tid" else AtomKind.BLOCK, number, 0))
        if word == "laneid":
            return self.forms.below(self._sizes.constant(_WARP))
        return self.forms.anything()

    def _address_of(self, name: str, offset: int) -> Form:
        variable = self._names.variable_of(name)
        if variable is None or variable.is_opaque:
            return self.forms.anything()
        if variable.space in ("shared", "local", "param"):
            return replace(self.forms.anything(), bases=frozenset({PRIVATE}))
        number = self._sizes.add(SizeKind.VARIABLE, self._names.number_of(variable))
        return self.forms.add(self.forms.size(number, may_be_pointer=True), self.forms.literal(offset))

    # -- instructions

    def load(self, i: Instruction, _values: Values) -> Form | None:
        """Return a parameter of the kernel."""
        place = i.operands[1] if len(i.operands) == 2 else None
        if "param" not in i.modifiers or not isinstance(place, Address) or not isinstance(place.base, Symbol):
            return None
        parameter = self._names.parameters.get(place.base.name)
        offset, type_ = place.base.offset + place.offset, i.types[0]
        if parameter is None or not 0 <= offset <= parameter.bytes - type_.bytes:
            return None
        number = self._sizes.add(SizeKind.PARAMETER, parameter.offset + offset, type_.bits)
        return self.forms.size(number, may_be_pointer=type_.bits == _WIDTHS[1])

    def move(self, i: Instruction, values: Values) -> Form:
        """Return what is copied; an address keeps its number in another space."""
        source = i.operands[1]
        found = self.operand(source, i.types[-1], values)
        is_private = not {"shared", "local"}.isdisjoint(i.modifiers)
        return replace(self.forms.anything(), bases=frozenset({PRIVATE})) if is_private else found

    def convert(self, i: Instruction, values: Values) -> Form | None:
        """Return a number in another width."""
        if i.modifiers:
            return None
        target, source = i.types
        found = self.operand(i.operands[1], source, values)
        return self.forms.exact(found, narrow_range(source)) if target.bits > source.bits else found

    def sum(self, i: Instruction, values: Values) -> Form | None:
        """Return a sum or a difference."""
        if i.modifiers:
            return None
        first, second = self._two(i, values)
        return self.forms.add(first, second, -1 if i.opcode == "sub" else 1)

    def product(self, i: Instruction, values: Values) -> Form | None:
        """Return a product, and with ``mad`` its sum with another number."""
        type_ = i.types[0]
        first, second = self._two(i, values)
        if i.modifiers == ("wide",):
            if type_.bits != _WIDTHS[0]:
                return None
            first, second = (self.forms.exact(each, narrow_range(type_)) for each in (first, second))
        elif i.modifiers != ("lo",):
            return None
        result = self.forms.multiply(first, second)
        if i.opcode == "mul":
            return result
        return self.forms.add(result, self.operand(i.operands[3], type_, values))

    def shift(self, i: Instruction, values: Values) -> Form | None:
        """Return a number times, or divided by, a power of two that is a literal."""
        by = i.operands[2]
        if not isinstance(by, Integer) or not 0 <= by.value < i.types[0].bits - 1 or i.modifiers:
            return None
        power = self._sizes.constant(1 << by.value)
        number = self.operand(i.operands[1], i.types[0], values)
        return self.forms.scale(number, power) if i.opcode == "shl" else self._divided(i, number, Form(power))

    def division(self, i: Instruction, values: Values) -> Form | None:
        """Return a quotient or a remainder."""
        return None if i.modifiers else self._divided(i, *self._two(i, values))

    def _divided(self, i: Instruction, number: Form, by: Form) -> Form:
        range_ = value_range(i.types[0])
        number, by = self.forms.exact(number, range_), self.forms.exact(by, range_)
        if not by.is_size or not number.is_known:
            return self.forms.anything()
        if number.is_size:
            kinds = {"div": SizeKind.DIVIDE, "rem": SizeKind.REMAINDER, "shr": SizeKind.SHIFT_RIGHT}
            return Form(self._sizes.add(kinds[i.opcode], number.constant, by.constant))
        if i.opcode == "rem":
            return self.forms.below(by.constant, number.duties | {(number.core, Range.UNSIGNED_64)})
        return self.forms.quotient(number, by.constant)

    def bits(self, i: Instruction, values: Values) -> Form | None:
        """Return a mask of bits, or what two sizes have."""
        first, second = self._two(i, values)
        if first.is_size and second.is_size:
            kinds = {"and": SizeKind.AND, "or": SizeKind.OR, "xor": SizeKind.XOR}
            return Form(self._sizes.add(kinds[i.opcode], first.constant, second.constant))
        mask = i.operands[2]
        if i.opcode != "and" or not isinstance(mask, Integer) or mask.value >> 31:
            return None
        return self.forms.below(self._sizes.constant(mask.value + 1))

    def extreme(self, i: Instruction, values: Values) -> Form | None:
        """Return the least or the greatest of two sizes."""
        if i.modifiers:
            return None
        first, second = (self.forms.exact(each, value_range(i.types[0])) for each in self._two(i, values))
        if not (first.is_size and second.is_size):
            return None
        kind = SizeKind.LEAST if i.opcode == "min" else SizeKind.MOST
        return Form(self._sizes.add(kind, first.constant, second.constant))

    def complement(self, i: Instruction, values: Values) -> Form:
        """Return a number with all bits turned: its negative less 1."""
        number = self.operand(i.operands[1], i.types[0], values)
        return self.forms.add(self.forms.literal(-1), number, -1)

    def comparison(self, i: Instruction, values: Values) -> Predicate | None:
        """Return what a comparison says where it holds, and where it does not."""
        how = i.modifiers[0] if len(i.modifiers) == 1 and len(i.operands) == 3 else ""
        range_ = value_range(i.types[0], is_signed=how not in _UNSIGNED and i.types[0].kind != "unsigned")
        first, second = (self.forms.exact(self.operand(e, i.types[0], values), range_) for e in i.operands[1:3])
        if not first.is_known or not second.is_known:
            return None
        how = _UNSIGNED.get(how, how)
        below, above = self.forms.add(first, second, -1), self.forms.add(second, first, -1)
        one = self.forms.literal(1)
        at_most, at_least = Condition(below), Condition(above)
        less, more = Condition(self.forms.add(below, one)), Condition(self.forms.add(above, one))
        same, other = frozenset({at_most, at_least}), frozenset({Condition(replace(below, duties=frozenset()), True)})
        found = {
            "lt": Predicate(frozenset({less}), frozenset({at_least})),
            "le": Predicate(frozenset({at_most}), frozenset({more})),
            "gt": Predicate(frozenset({more}), frozenset({at_most})),
            "ge": Predicate(frozenset({at_least}), frozenset({less})),
            "eq": Predicate(same, other),
            "ne": Predicate(other, same),
        }
        return found.get(how)

    def _logic(self, i: Instruction, values: Values) -> Predicate | None:
        """Return a predicate that is made of others."""
        sources = [self._any_predicate(each, values) for each in i.operands[1:]]
        if i.opcode in ("mov", "not") and len(sources) == 1:
            return sources[0].opposite if i.opcode == "not" else sources[0]
        if len(sources) == 2 and i.opcode in ("and", "or"):
            first, second = sources
            if i.opcode == "and":
                return Predicate(first.when | second.when, frozenset())
            return Predicate(frozenset(), first.unless | second.unless)
        return None

    def _any_predicate(self, operand: Operand, values: Values) -> Predicate:
        if isinstance(operand, Negated):
            return self.predicate(operand.register, values).opposite
        return self.predicate(operand, values) if isinstance(operand, Register) else Predicate()

    def _two(self, i: Instruction, values: Values) -> tuple[Form, Form]:
        first, second = (self.operand(each, i.types[0], values) for each in i.operands[1:3])
        return first, second


def narrow_range(type_: Type) -> Range:
    """Return in which range a number with 32 bits is."""
    return Range.SIGNED_32 if type_.is_signed else Range.UNSIGNED_32


def value_range(type_: Type, is_signed: bool | None = None) -> Range:
    """Return in which range a number of a type is."""
    signed = type_.is_signed if is_signed is None else is_signed
    if type_.bits == _WIDTHS[0]:
        return Range.SIGNED_32 if signed else Range.UNSIGNED_32
    return Range.SIGNED_64 if signed else Range.UNSIGNED_64


_UNSIGNED: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_Handler = Callable[[Evaluation, Instruction, Values], Value | None]
_HANDLERS: Final[dict[str, _Handler]] = {
    "ld": Evaluation.load,
    "mov": Evaluation.move,
    "cvta": Evaluation.move,
    "cvt": Evaluation.convert,
    "add": Evaluation.sum,
    "sub": Evaluation.sum,
    "mul": Evaluation.product,
    "mad": Evaluation.product,
    "shl": Evaluation.shift,
    "shr": Evaluation.shift,
    "div": Evaluation.division,
    "rem": Evaluation.division,
    "and": Evaluation.bits,
    "or": Evaluation.bits,
    "xor": Evaluation.bits,
    "not": Evaluation.complement,
    "min": Evaluation.extreme,
    "max": Evaluation.extreme,
    "setp": Evaluation.comparison,
}
