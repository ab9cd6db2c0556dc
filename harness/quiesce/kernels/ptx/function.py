"""The body of one function, parsed and checked: its declarations, and its instructions and labels in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce.kernels.ptx.declarations import Parameter, Variable
from quiesce.kernels.ptx.operands import Operand, Register
from quiesce.kernels.ptx.types import Type


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate that an instruction depends on: ``@%p1`` or ``@!%p1``."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``modifiers`` are those words after the opcode that name no type."""

    opcode: str
    modifiers: tuple[str, ...]
    types: tuple[Type, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    text: str
    line: int
    location: tuple[int, int] = (0, 0)
    """File and line of the source, by the last ``.loc``."""
    caller: tuple[int, int] = (0, 0)
    """Those of the code that the instruction was inlined into, outermost; 0 of what was not inlined."""

    @property
    def name(self) -> str:
        """Return the opcode with everything that belongs to it, for messages."""
        words = self.text.split(None, 2)
        return words[1] if self.guard and len(words) > 1 else words[0].rstrip(";")


@dataclass(frozen=True, slots=True)
class Label:
    """A place to branch to. The name is unique in the function."""

    name: str


@dataclass(frozen=True, slots=True)
class Prototype:
    """How a function whose address is in a register is called."""

    returned: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its body. Names of locals and labels are unique, although scopes may repeat them."""

    name: str
    is_entry: bool
    returned: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    items: tuple[Instruction | Label, ...]
    variables: dict[str, Variable] = field(default_factory=dict)
    """Local, shared and parameter memory that the body declares."""
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, Prototype] = field(default_factory=dict)

    def instructions(self) -> tuple[Instruction, ...]:
        """Return the instructions without the labels."""
        return tuple(item for item in self.items if isinstance(item, Instruction))
