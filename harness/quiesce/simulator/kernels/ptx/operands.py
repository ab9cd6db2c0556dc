"""What an instruction works on: registers, literals, names, addresses and groups of them, and their types.

https://docs.nvidia.com/cuda/parallel-thread-execution/#instruction-operands
https://docs.nvidia.com/cuda/parallel-thread-execution/#fundamental-types
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["predicate", "bits", "unsigned", "signed", "float"]


@dataclass(frozen=True, slots=True)
class Type:
    """One type: its width, how its bits are read, and how many numbers lie in it side by side."""

    name: str
    bits: int
    kind: Kind
    lanes: int = 1

    @property
    def bytes(self) -> int:
        """Return how much memory one takes."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        """Say whether it holds numbers with a fraction, also several of them."""
        return self.kind == "float"

    @property
    def is_signed(self) -> bool:
        """Say whether wider registers repeat its sign."""
        return self.kind == "signed"

    @property
    def integer(self) -> str:
        """Return the integer type of LLVM with as many bits."""
        return f"i{self.bits}"

    @property
    def floating(self) -> str:
        """Return LLVM's name of a type with one number."""
        return _FLOATING[self.name]


_FLOATING: Final = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}


def _integers() -> list[Type]:
    kinds: list[tuple[str, Kind]] = [("b", "bits"), ("u", "unsigned"), ("s", "signed")]
    return [Type(f"{letter}{bits}", bits, kind) for letter, kind in kinds for bits in (8, 16, 32, 64)]


TYPES: Final[dict[str, Type]] = {
    each.name: each
    for each in (
        Type("pred", 1, "predicate"),
        *_integers(),
        Type("b128", 128, "bits"),
        Type("f16", 16, "float"),
        Type("bf16", 16, "float"),
        Type("f32", 32, "float"),
        Type("f64", 64, "float"),
        Type("f16x2", 32, "float", 2),
        Type("bf16x2", 32, "float", 2),
        Type("u16x2", 32, "unsigned", 2),
        Type("s16x2", 32, "signed", 2),
    )
}
PREDICATE: Final = TYPES["pred"]


def lane_of(packed: Type) -> Type:
    """Return the type of each number of a packed type."""
    return TYPES[packed.name.removesuffix("x2")]


def bits_type(bits: int) -> Type:
    """Return the untyped bits of a width."""
    return TYPES[f"b{bits}"]


@dataclass(frozen=True, slots=True)
class Register:
    """A register that its function declares. The name is unique in the function."""

    name: str
    type: Type

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Integer:
    """A literal without a fraction."""

    value: int


@dataclass(frozen=True, slots=True)
class Float:
    """A literal with a fraction: the bits of a float or of a double."""

    bits: int
    width: int

    def bits_as(self, width: int) -> int:
        """Return the bits of the same number as a float or as a double, by the width that is asked for."""
        if width == self.width or width not in (32, 64):
            return self.bits
        if width == 64:
            return _repack("<I", "<f", "<d", "<Q", self.bits)
        return _repack("<Q", "<d", "<f", "<I", self.bits)


def _repack(bits: str, own: str, other: str, other_bits: str, value: int) -> int:
    (number,) = struct.unpack(own, struct.pack(bits, value))
    try:
        packed = struct.pack(other, number)
    except OverflowError:
        packed = struct.pack(other, float("inf") if number > 0 else float("-inf"))
    return int(struct.unpack(other_bits, packed)[0])


@dataclass(frozen=True, slots=True)
class Special:
    """A register that the hardware fills, such as ``%tid.x``."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, a parameter, a function or a label, and bytes past it."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    """The destination that drops a result: ``_``."""


@dataclass(frozen=True, slots=True)
class Negated:
    """The opposite of a predicate: ``!%p1``."""

    register: Register


@dataclass(frozen=True, slots=True)
class Address:
    """A place in memory: ``[%rd1+8]``."""

    base: Register | Symbol | Integer
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Texel:
    """A place in a texture or a surface: ``[%rd1, {%f1, %f2}]``, or with a sampler between the two."""

    reference: Register | Symbol
    coordinates: tuple[Operand, ...]
    sampler: Register | Symbol | None = None


@dataclass(frozen=True, slots=True)
class Vector:
    """Several side by side: ``{%f1, %f2}``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations: ``%p1|%p2``."""

    first: Register | Sink
    second: Register | Sink


@dataclass(frozen=True, slots=True)
class Group:
    """What a call passes or gets: ``(param0, param1)``."""

    elements: tuple[Operand, ...]


Operand = Register | Integer | Float | Special | Symbol | Sink | Negated | Address | Texel | Vector | Pair | Group

_FLOAT32: Final = re.compile(r"0[fF]([0-9a-fA-F]{8})\Z")
_FLOAT64: Final = re.compile(r"0[dD]([0-9a-fA-F]{16})\Z")
_INTEGER: Final = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?\Z")
_DECIMAL: Final = re.compile(r"\d+\.\d+(?:[eE][+-]?\d+)?\Z")
_DIGITS_MAX: Final = 70
WARP_SIZE: Final = 32


def parse_literal(word: str) -> Integer | Float | None:
    """Return a literal without its sign; None for anything else."""
    if found := _FLOAT32.match(word):
        return Float(int(found[1], 16), 32)
    if found := _FLOAT64.match(word):
        return Float(int(found[1], 16), 64)
    if len(word) <= _DIGITS_MAX and _INTEGER.match(word):
        digits = word.rstrip("U")
        is_octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        value = int(digits, 8 if is_octal else 0)
        return Integer(value) if value < 1 << 64 else None
    if _DECIMAL.match(word):
        return Float(int(struct.unpack("<Q", struct.pack("<d", float(word)))[0]), 64)
    return Integer(WARP_SIZE) if word == "WARP_SZ" else None


def negative(literal: Integer | Float) -> Integer | Float:
    """Return the literal with the opposite sign."""
    if isinstance(literal, Integer):
        return Integer(-literal.value)
    return Float(literal.bits ^ 1 << (literal.width - 1), literal.width)


def registers_in(operand: Operand | None) -> tuple[Register, ...]:
    """Return every register that an operand names."""
    match operand:
        case Register():
            return (operand,)
        case Negated(register=register):
            return (register,)
        case Address(base=Register() as base):
            return (base,)
        case Texel(reference=reference, coordinates=coordinates, sampler=sampler):
            return tuple(each for part in (reference, *coordinates, sampler) for each in registers_in(part))
        case Vector(elements=elements) | Group(elements=elements):
            return tuple(each for element in elements for each in registers_in(element))
        case Pair(first=first, second=second):
            return (*registers_in(first), *registers_in(second))
        case _:
            return ()


_VECTORS: Final = ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
_SINGLE: Final = (
    *("laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid", "is_explicit_cluster"),
    *("lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt"),
    *("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"),
    *("total_smem_size", "dynamic_smem_size", "aggr_smem_size", "cluster_ctarank", "cluster_nctarank"),
    *("current_graph_exec", "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap"),
)
SPECIAL_REGISTERS: Final = frozenset(
    [f"%{name}" for name in _SINGLE]
    + [f"%{name}.{axis}" for name in _VECTORS for axis in "xyzw"]
    + [f"%envreg{number}" for number in range(32)]
    + [f"%pm{number}" for number in range(8)]
    + [f"%pm{number}_64" for number in range(8)]
    + [f"%reserved_smem_offset_{number}" for number in (0, 1)]
)
