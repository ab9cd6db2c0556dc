"""What an instruction does with memory, as its check sees it, and the shared array that an access begins at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Address, Operand, Register, Symbol, registers_in
from quiesce.simulator.kernels.translation.data_flow import definitions_of

AccessKind = Literal["load", "store", "atomic", "copy"]
"""A copy writes shared memory later: up to when its thread waits for it."""
_KINDS: Final[dict[AccessKind, int]] = {"load": 0, "store": 1, "atomic": 2, "copy": 3}
_SPACES: Final = {"generic": 0, "global": 0, "const": 0, "shared": 1, "local": 2}


@dataclass(frozen=True, slots=True)
class Access:
    """What an instruction does with memory."""

    space: str
    bytes: int
    kind: AccessKind

    def number(self, kinds: int = 0) -> int:
        """Return what the runtime is told of it; ``kinds``: those of its use."""
        return self.bytes | _KINDS[self.kind] << 8 | _SPACES[self.space] << 12 | kinds << 16


@dataclass(frozen=True, slots=True)
class Judged:
    """What the check of an access depends on.

    ``kinds``: those of its use; ``may_race``: with a thread of its block, where it uses shared memory.
    """

    access: Access
    kinds: int
    may_race: bool
    array: tuple[int, int] | None = None
    """Where the array of shared memory lies that the access has to stay in, and its size."""
    stored: tuple[str, ...] = ()
    """The types of the values that the check itself stores, before another thread's is judged."""


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
        self._definitions = definitions_of(function)
        self._known: dict[Register, _Names] = {}

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
