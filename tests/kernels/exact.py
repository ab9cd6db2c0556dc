"""Arithmetic of floating-point formats with fractions: each result is rounded once, as the ISA has it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Final

NEAREST, ZERO, DOWN, UP = "rn", "rz", "rm", "rp"
Number = Fraction | str
"""A finite number, ``inf``, ``-inf``, ``nan``, or ``-0``."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of IEEE 754."""

    exponent_bits: int
    fraction_bits: int

    @property
    def bits(self) -> int:
        """Return how many bits a number has."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        """Return what is added to an exponent."""
        return (1 << (self.exponent_bits - 1)) - 1

    def read(self, bits: int) -> Number:
        """Return the number that bits stand for."""
        fraction = bits & ((1 << self.fraction_bits) - 1)
        exponent = bits >> self.fraction_bits & ((1 << self.exponent_bits) - 1)
        negative = bits >> (self.bits - 1)
        if exponent == (1 << self.exponent_bits) - 1:
            return "nan" if fraction else "-inf" if negative else "inf"
        if not exponent and not fraction:
            return "-0" if negative else Fraction(0)
        whole = fraction | (1 << self.fraction_bits if exponent else 0)
        value = Fraction(whole) * Fraction(2) ** (max(exponent, 1) - self.bias - self.fraction_bits)
        return -value if negative else value

    def write(self, number: Number, rounding: str = NEAREST, flushes: bool = False) -> int | None:
        """Return the bits of a number, rounded; None for any NaN."""
        sign = 1 << (self.bits - 1)
        infinity = ((1 << self.exponent_bits) - 1) << self.fraction_bits
        if isinstance(number, str):
            return {"nan": None, "inf": infinity, "-inf": sign | infinity, "-0": sign}[number]
        if not number:
            return 0
        negative, size = number < 0, abs(number)
        own = sign if negative else 0
        place = max(_exponent_of(size), 1 - self.bias) - self.fraction_bits
        scaled = size / Fraction(2) ** place
        kept = scaled.numerator // scaled.denominator
        rest = scaled - kept
        up = {
            NEAREST: rest > Fraction(1, 2) or (rest == Fraction(1, 2) and kept & 1 == 1),
            ZERO: False,
            DOWN: negative and rest > 0,
            UP: not negative and rest > 0,
        }[rounding]
        kept += up
        bits = kept + ((place + self.fraction_bits + self.bias - 1) << self.fraction_bits)
        if bits >= infinity:
            inwards = rounding == ZERO or rounding == (UP if negative else DOWN)
            return own | (infinity - 1 if inwards else infinity)
        return own if flushes and bits < 1 << self.fraction_bits else own | bits

    def flush(self, bits: int) -> int:
        """Return a zero of the same sign for a subnormal number."""
        exponent = bits >> self.fraction_bits & ((1 << self.exponent_bits) - 1)
        return bits if exponent else bits & 1 << (self.bits - 1)


def _exponent_of(size: Fraction) -> int:
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    return exponent - 1 if Fraction(2) ** exponent > size else exponent


FORMATS: Final = {"f16": Format(5, 10), "bf16": Format(8, 7), "f32": Format(8, 23), "f64": Format(11, 52)}


def _is_negative(number: Number) -> bool:
    return number.startswith("-") if isinstance(number, str) else number < 0


def _zero(negative: bool) -> Number:
    return "-0" if negative else Fraction(0)


def negate(number: Number) -> Number:
    """Return the opposite number."""
    if number == "-0":
        return Fraction(0)
    if isinstance(number, str):
        return {"nan": "nan", "inf": "-inf", "-inf": "inf"}[number]
    return -number if number else "-0"


def _finite(number: Number) -> Fraction | None:
    if number == "-0":
        return Fraction(0)
    return None if isinstance(number, str) else number


def add(first: Number, second: Number, rounding: str) -> Number:
    """Return a sum, exact; the sign of a zero depends on the rounding."""
    one, other = _finite(first), _finite(second)
    if one is None or other is None:
        infinite = [each for each in (first, second) if _finite(each) is None]
        if infinite[0] != infinite[-1]:
            return "nan"
        return infinite[0]
    total = one + other
    if total:
        return total
    if not one and _is_negative(first) == _is_negative(second):
        return first
    return _zero(rounding == DOWN)


def multiply(first: Number, second: Number) -> Number:
    """Return a product, exact."""
    negative = _is_negative(first) != _is_negative(second)
    one, other = _finite(first), _finite(second)
    if "nan" in (first, second) or (one is None and not other and other is not None):
        return "nan"
    if other is None and not one and one is not None:
        return "nan"
    if one is None or other is None:
        return "-inf" if negative else "inf"
    return one * other if one and other else _zero(negative)


def divide(first: Number, second: Number) -> Number:
    """Return a quotient, exact."""
    negative = _is_negative(first) != _is_negative(second)
    one, other = _finite(first), _finite(second)
    if "nan" in (first, second) or (one is None and other is None) or (one == 0 and other == 0):
        return "nan"
    if one is None or other == 0:
        return "-inf" if negative else "inf"
    return one / other if one and other is not None else _zero(negative)


def root(number: Number) -> Number:
    """Return a square root with so many digits that rounding it is right in every format here."""
    value = _finite(number)
    if value is None or value < 0:
        return "inf" if number == "inf" else "nan"
    if not value:
        return number
    shift = 1 << 12
    scaled = (value.numerator << shift) // value.denominator
    exact = scaled << 0 == value * (1 << shift)
    whole = isqrt(scaled)
    is_root = exact and whole * whole == scaled
    found = Fraction(whole, 1 << (shift // 2))
    return found if is_root else found + Fraction(1, 1 << (shift // 2 + 2))
