"""Integer arithmetic, by the rules of the ISA's chapters on integers and extended precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.kernels.programs import evaluate, evaluate_all, every_pair, width_of

EDGES: Final = {
    16: (0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1234),
    32: (0, 1, 2, 3, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0x12345678),
    64: (0, 1, 2, 3, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0x123456789ABCDEF0),
}
TYPES: Final = ("u16", "s16", "u32", "s32", "u64", "s64")


def value_of(type_: str, bits: int) -> int:
    """Return the number that bits of a type stand for."""
    width = width_of(type_)
    return bits - (1 << width) if type_[0] == "s" and bits >> (width - 1) else bits


def cut(type_: str, value: int) -> int:
    return value & ((1 << width_of(type_)) - 1)


def quotient(first: int, second: int) -> int:
    size = abs(first) // abs(second)
    return size if (first < 0) == (second < 0) else -size


OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_two_sources(name: str, type_: str) -> None:
    first, second = every_pair(type_, EDGES[width_of(type_)])
    expected = [
        cut(type_, OPERATIONS[name](value_of(type_, int(a)), value_of(type_, int(b))))
        for a, b in zip(first[1], second[1], strict=True)
    ]
    assert evaluate(f"{name}.{type_} %x, %a, %b;", first, second, result=type_) == expected


@pytest.mark.parametrize("type_", TYPES)
def test_division(type_: str) -> None:
    """A device does not trap: not at zero, and not where the result is too large."""
    first, second = every_pair(type_, EDGES[width_of(type_)])
    found = evaluate_all(f"div.{type_} %x, %a, %b;\nrem.{type_} %y, %a, %b;", [first, second], [type_, type_])
    for a, b, x, y in zip(first[1], second[1], *found, strict=True):
        left, right = value_of(type_, int(a)), value_of(type_, int(b))
        if right:
            assert x == cut(type_, quotient(left, right))
            assert y == cut(type_, left - right * quotient(left, right))
        else:
            assert (x, y) == (cut(type_, -1), cut(type_, -1))


@pytest.mark.parametrize("type_", TYPES)
def test_high_half_of_a_product(type_: str) -> None:
    first, second = every_pair(type_, EDGES[width_of(type_)])
    expected = [
        cut(type_, value_of(type_, int(a)) * value_of(type_, int(b)) >> width_of(type_))
        for a, b in zip(first[1], second[1], strict=True)
    ]
    assert evaluate(f"mul.hi.{type_} %x, %a, %b;", first, second, result=type_) == expected


@pytest.mark.parametrize(("type_", "wide"), [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")])
def test_wide_product_and_sum(type_: str, wide: str) -> None:
    first, second = every_pair(type_, EDGES[width_of(type_)])
    third = (wide, [7] * len(first[1]))
    expected = [
        cut(wide, value_of(type_, int(a)) * value_of(type_, int(b)) + 7)
        for a, b in zip(first[1], second[1], strict=True)
    ]
    assert evaluate(f"mad.wide.{type_} %x, %a, %b, %c;", first, second, third, result=wide) == expected


def test_saturation() -> None:
    first, second = every_pair("s32", EDGES[32])
    added, subtracted = evaluate_all(
        "add.sat.s32 %x, %a, %b;\nsub.sat.s32 %y, %a, %b;", [first, second], ["s32", "s32"]
    )
    for a, b, x, y in zip(first[1], second[1], added, subtracted, strict=True):
        left, right = value_of("s32", int(a)), value_of("s32", int(b))
        assert value_of("s32", x) == max(-(2**31), min(2**31 - 1, left + right))
        assert value_of("s32", y) == max(-(2**31), min(2**31 - 1, left - right))


@pytest.mark.parametrize("bits", [32, 64])
def test_sum_with_carry_over_two_registers(bits: int) -> None:
    values = EDGES[bits]
    low = every_pair(f"u{bits}", values)
    count = len(values) ** 2
    high = [(f"u{bits}", [values[(place * 5) % len(values)] for place in range(count)])] * 2
    found = evaluate_all(
        f"add.cc.u{bits} %x, %a, %b;\naddc.u{bits} %y, %c, %d;\nsub.cc.u{bits} %z, %a, %b;\nsubc.u{bits} %w, %c, %d;",
        [*low, *high],
        [f"u{bits}"] * 4,
    )
    whole = 1 << 2 * bits
    for a, b, c, d, *parts in zip(low[0][1], low[1][1], high[0][1], high[1][1], *found, strict=True):
        left, right = int(a) | int(c) << bits, int(b) | int(d) << bits
        assert parts[0] | parts[1] << bits == (left + right) % whole
        assert parts[2] | parts[3] << bits == (left - right) % whole


def test_product_of_128_bits_by_a_chain_with_carries() -> None:
    """The chain that compilers write for a product of two registers each."""
    first, second = every_pair("u32", EDGES[32])
    found = evaluate_all(
        "mul.lo.u32 %x, %a, %b;\nmad.hi.cc.u32 %y, %a, %b, %a;\nmadc.hi.u32 %z, %a, %b, 0;",
        [first, second],
        ["u32"] * 3,
    )
    for a, b, x, y, z in zip(first[1], second[1], *found, strict=True):
        high = int(a) * int(b) >> 32
        assert x == cut("u32", int(a) * int(b))
        assert y == cut("u32", high + int(a))
        assert z == cut("u32", high + (high + int(a) >> 32))


@pytest.mark.parametrize("type_", ["s16", "s32", "s64"])
def test_sign(type_: str) -> None:
    values = EDGES[width_of(type_)]
    negated, absolute = evaluate_all(f"neg.{type_} %x, %a;\nabs.{type_} %y, %a;", [(type_, values)], [type_, type_])
    assert negated == [cut(type_, -value) for value in values]
    assert absolute == [cut(type_, abs(value_of(type_, value))) for value in values]


@pytest.mark.parametrize("bits", [32, 64])
def test_counting_bits(bits: int) -> None:
    values = EDGES[bits]
    ones, leading, backwards = evaluate_all(
        f"popc.b{bits} %x, %a;\nclz.b{bits} %y, %a;\nbrev.b{bits} %z, %a;",
        [(f"b{bits}", values)],
        ["u32", "u32", f"b{bits}"],
    )
    assert ones == [value.bit_count() for value in values]
    assert leading == [bits - value.bit_length() for value in values]
    assert backwards == [int(f"{value:0{bits}b}"[::-1], 2) for value in values]


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_highest_bit_that_is_no_sign(type_: str) -> None:
    values = EDGES[width_of(type_)]
    place, amount = evaluate_all(
        f"bfind.{type_} %x, %a;\nbfind.shiftamt.{type_} %y, %a;", [(type_, values)], ["u32", "u32"]
    )
    for value, found, shift in zip(values, place, amount, strict=True):
        signed = value_of(type_, value)
        length = (signed if signed >= 0 else ~signed).bit_length()
        assert found == cut("u32", length - 1)
        assert shift == (cut("u32", -1) if not length else width_of(type_) - length)


def test_products_of_24_bits() -> None:
    first, second = every_pair("u32", (0, 1, 0xFFFFFF, 0x800000, 0xFF123456))
    unsigned, signed, high = evaluate_all(
        "mul24.lo.u32 %x, %a, %b;\nmul24.lo.s32 %y, %a, %b;\nmul24.hi.u32 %z, %a, %b;", [first, second], ["u32"] * 3
    )
    for a, b, *found in zip(first[1], second[1], unsigned, signed, high, strict=True):
        left, right = int(a) & 0xFFFFFF, int(b) & 0xFFFFFF
        assert found[0] == cut("u32", left * right)
        assert found[1] == cut("u32", (left - (left >> 23 << 24)) * (right - (right >> 23 << 24)))
        assert found[2] == left * right >> 16


def test_sum_of_differences() -> None:
    first, second = every_pair("s32", EDGES[32])
    third = ("s32", [5] * len(first[1]))
    found = evaluate("sad.s32 %x, %a, %b, %c;", first, second, third, result="s32")
    assert found == [
        cut("s32", 5 + abs(value_of("s32", int(a)) - value_of("s32", int(b))))
        for a, b in zip(first[1], second[1], strict=True)
    ]


@pytest.mark.parametrize("signs", ["u32.u32", "s32.u32", "u32.s32", "s32.s32"])
def test_dot_products(signs: str) -> None:
    first_type, second_type = signs.split(".")
    first, second = every_pair("u32", (0, 0x01020304, 0xFF7F80FE, 0xFFFFFFFF))
    count = len(first[1])
    of_bytes, low, high = evaluate_all(
        f"dp4a.{signs} %x, %a, %b, %c;\ndp2a.lo.{signs} %y, %a, %b, %c;\ndp2a.hi.{signs} %z, %a, %b, %c;",
        [first, second, ("u32", [9] * count)],
        ["u32"] * 3,
    )

    def parts(value: int, width: int, type_: str) -> list[int]:
        split = [value >> at & ((1 << width) - 1) for at in range(0, 32, width)]
        return [part - (1 << width) if type_ == "s32" and part >> (width - 1) else part for part in split]

    for a, b, *found in zip(first[1], second[1], of_bytes, low, high, strict=True):
        octets, words, others = (
            parts(int(a), 8, first_type),
            parts(int(a), 16, first_type),
            parts(int(b), 8, second_type),
        )
        assert found[0] == cut("u32", 9 + sum(x * y for x, y in zip(octets, others, strict=True)))
        assert found[1] == cut("u32", 9 + sum(x * y for x, y in zip(words, others[:2], strict=True)))
        assert found[2] == cut("u32", 9 + sum(x * y for x, y in zip(words, others[2:], strict=True)))


def test_two_integers_in_a_register() -> None:
    first, second = every_pair("u32", (0, 0x00017FFF, 0x8000FFFF, 0xFFFF0001))
    added, least, positive = evaluate_all(
        "add.u16x2 %x, %a, %b;\nmin.s16x2 %y, %a, %b;\nmax.relu.s16x2 %z, %a, %b;", [first, second], ["u32"] * 3
    )
    for a, b, *found in zip(first[1], second[1], added, least, positive, strict=True):
        for at in (0, 16):
            left, right = int(a) >> at & 0xFFFF, int(b) >> at & 0xFFFF
            signed = value_of("s16", left), value_of("s16", right)
            assert found[0] >> at & 0xFFFF == (left + right) & 0xFFFF
            assert found[1] >> at & 0xFFFF == cut("s16", min(signed))
            assert found[2] >> at & 0xFFFF == cut("s16", max(*signed, 0))
