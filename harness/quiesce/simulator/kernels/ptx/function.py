"""One function, parsed and checked: what it declares, and its instructions and labels in order.

https://docs.nvidia.com/cuda/parallel-thread-execution/#state-spaces-types-and-variables
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.operands import TYPES, Integer, Operand, Register, Type, parse_literal
from quiesce.simulator.kernels.ptx.tokens import END, Tokens

LINKAGE: Final = frozenset({".visible", ".extern", ".weak", ".common"})
OPAQUE: Final = frozenset({".texref", ".surfref", ".samplerref"})
_OPAQUE_BYTES: Final = 8
BYTES_MAX: Final = 1 << 40
"""No variable is larger: a text that asks for more is wrong."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: where it lies, and how large it is. An array without a size is ``extern`` and has 0 bytes."""

    name: str
    space: str
    bytes: int
    alignment: int
    is_external: bool
    is_opaque: bool = False
    """Whether it refers to a texture, a surface or a sampler: its memory has the number of the object."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function, or what one returns: its place among them and its size."""

    name: str
    offset: int
    bytes: int
    is_register: bool
    bits: int


def parse_parameters(tokens: Tokens) -> tuple[Parameter, ...]:
    """Read parameters in parentheses, if they come next; the place of each follows from those before it."""
    found: list[Parameter] = []
    if not tokens.skip("("):
        return ()
    end = 0
    while not tokens.skip(")"):
        space = tokens.next()
        if space not in (".param", ".reg"):
            raise tokens.refuse("a parameter is neither '.param' nor '.reg'")
        alignment, element_bytes, bits = _parse_type(tokens)
        _skip_pointer_attributes(tokens)
        name, count = _parse_name(tokens)
        bytes_ = element_bytes * (1 if count is None else count)
        offset = -(-end // alignment) * alignment
        found.append(Parameter(name, offset, bytes_, space == ".reg", bits))
        end = offset + bytes_
        tokens.skip(",")
    return tuple(found)


def parse_variables(tokens: Tokens, is_external: bool) -> tuple[Variable, ...]:
    """Read a declaration from its state space on, up to its semicolon."""
    space = tokens.next().removeprefix(".")
    while tokens.peek() == ".attribute":
        tokens.next()
        while tokens.next() not in (")", END):
            pass
    is_opaque = tokens.peek() in OPAQUE
    alignment, element_bytes, _ = _parse_type(tokens)
    found = []
    while True:
        name, count = _parse_name(tokens)
        _skip_initialiser(tokens)
        bytes_ = element_bytes * (1 if count is None else count)
        found.append(Variable(name, space, bytes_, alignment, is_external, is_opaque))
        if not tokens.skip(","):
            break
    tokens.expect(";")
    return tuple(found)


def _parse_type(tokens: Tokens) -> tuple[int, int, int]:
    """Return the alignment, the bytes of an element, and the bits of the type."""
    alignment = 0
    lanes = 1
    while True:
        word = tokens.next()
        if word == ".align":
            alignment = _parse_count(tokens)
            if not alignment or alignment & (alignment - 1) or alignment > 1 << 16:
                raise tokens.refuse("an alignment is no power of two")
        elif word in (".v2", ".v4"):
            lanes = int(word[2])
        elif word in OPAQUE:
            return _OPAQUE_BYTES, _OPAQUE_BYTES, 8 * _OPAQUE_BYTES
        elif word[1:] in TYPES and word[0] == ".":
            bits = TYPES[word[1:]].bits
            lanes = int(tokens.next()[2]) if tokens.peek() in (".v2", ".v4") else lanes
            bytes_ = max(1, bits // 8) * lanes
            return alignment or bytes_, bytes_, bits
        else:
            raise tokens.refuse(f"'{word[:40]}' is no type that is executed")


def _parse_count(tokens: Tokens) -> int:
    literal = parse_literal(tokens.next())
    if not isinstance(literal, Integer) or literal.value > BYTES_MAX:
        raise tokens.refuse("a count is no number")
    return literal.value


def _parse_name(tokens: Tokens) -> tuple[str, int | None]:
    """Return a name and how many elements its array has, 0 where that is left open; None: it is no array."""
    name = tokens.next()
    if not name or not (name[0].isalpha() or name[0] in "_$%"):
        raise tokens.refuse("a name is missing")
    count: int | None = None
    while tokens.skip("["):
        count = 1 if count is None else count
        if tokens.skip("]"):
            count = 0
            continue
        count *= _parse_count(tokens)
        if count > BYTES_MAX:
            raise tokens.refuse(f"'{name}' is too large")
        tokens.expect("]")
    return name, count


def _skip_pointer_attributes(tokens: Tokens) -> None:
    """Go past ``.ptr .global .align 4``: it says nothing about the parameter itself."""
    if tokens.skip(".ptr"):
        while tokens.peek().startswith("."):
            if tokens.next() == ".align":
                tokens.next()


def _skip_initialiser(tokens: Tokens) -> None:
    """Go past a first value, which ``initialisers`` reads."""
    if not tokens.skip("="):
        return
    depth = 0
    while tokens.peek() not in (END, ";"):
        word = tokens.peek()
        if word == "," and depth <= 0:
            break
        depth += (word in "{(") - (word in "})")
        tokens.next()


def total_bytes(parameters: Sequence[Parameter]) -> int:
    """Return how long the block of parameters is."""
    return max((each.offset + each.bytes for each in parameters), default=0)


def require_memory(variable: Variable, bytes_max: int) -> None:
    """Raise RefusedKernel where a variable is larger than its state space."""
    if variable.bytes > bytes_max:
        raise RefusedKernel(f"'{variable.name}' has {variable.bytes:,} bytes, more than .{variable.space} memory has")


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
