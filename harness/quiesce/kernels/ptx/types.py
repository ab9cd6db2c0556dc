"""The fundamental types of PTX, by their names in an instruction."""

from __future__ import annotations

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
