"""The array of shared memory that an access begins at, where the text says so.

The arrays of a block lie one after another. An access whose address is computed from one of them, and from no other,
has to stay inside it. Addresses that come from memory, from parameters or from two arrays say nothing of that.
"""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Function, Instruction
from quiesce.kernels.ptx.operands import Address, Operand, Register, Symbol, registers_in
from quiesce.kernels.translation.roles import written_operands

_Names = frozenset[str] | None
"""The names that an address begins at; None where that is not known."""
_NOTHING: Final[frozenset[str]] = frozenset()
_ITSELF: Final = frozenset({""})
"""Of an address that moves in a loop: it begins where it did before."""
_VALUES: Final = frozenset({"ld", "ldu", "atom", "shfl", "vote", "match", "redux", "call", "setp", "tex", "suld"})
"""Operations whose result is taken for an index, wherever it comes from."""


class SharedArrays:
    """The arrays that the accesses of a function begin at."""

    def __init__(self, function: Function) -> None:
        self._definitions: dict[Register, list[Instruction]] = {}
        self._known: dict[Register, _Names] = {}
        for instruction in function.instructions():
            for operand in written_operands(instruction):
                for register in registers_in(operand):
                    self._definitions.setdefault(register, []).append(instruction)

    def of(self, i: Instruction) -> str | None:
        """Return the name of the array that an access begins at; None for a copy that names several."""
        found = [self._of(operand.base) for operand in i.operands if isinstance(operand, Address)]
        named = [names for names in found if names]
        return next(iter(named[0])) if len(named) == 1 and len(named[0]) == 1 else None

    def _of(self, operand: Operand) -> _Names:
        if isinstance(operand, Symbol):
            return frozenset({operand.name})
        if not isinstance(operand, Register):
            return _NOTHING
        if operand not in self._known:
            self._known[operand] = _ITSELF
            found = [self._made(each) for each in self._definitions.get(operand, ())]
            is_mixed = _NOTHING in found and any(each != _NOTHING for each in found)
            names = None if is_mixed else _join(found)
            self._known[operand] = names if names is None else names - _ITSELF
        return self._known[operand]

    def _made(self, i: Instruction) -> _Names:
        if i.opcode in _VALUES:
            return _NOTHING
        if i.opcode in ("mov", "cvt", "cvta") and isinstance(i.operands[1], Register | Symbol):
            return self._of(i.operands[1])
        if i.opcode in ("add", "sub") and i.types and not i.types[0].is_float:
            return self._sum(i.operands[1:], i.opcode == "sub")
        if i.opcode == "mad":
            return self._of(i.operands[3]) if self._is_number(i.operands[1:3]) else None
        return _NOTHING if self._is_number(i.operands[1:]) else None

    def _sum(self, parts: tuple[Operand, ...], subtracts: bool) -> _Names:
        found = [self._of(each) for each in parts]
        if subtracts and found[1] != _NOTHING:
            return None
        return _join(found) if sum(names != _NOTHING for names in found) <= 1 else None

    def _is_number(self, operands: tuple[Operand, ...]) -> bool:
        """Say whether no operand is an address, as far as this is known."""
        return all(self._of(each) == _NOTHING for operand in operands for each in _parts(operand))


def _parts(operand: Operand) -> tuple[Operand, ...]:
    return (operand,) if isinstance(operand, Symbol) else registers_in(operand)


def _join(found: list[_Names]) -> _Names:
    names: frozenset[str] = _NOTHING
    for each in found:
        if each is None:
            return None
        names |= each
    return names
