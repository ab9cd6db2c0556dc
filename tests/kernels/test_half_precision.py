"""Half precision and bfloat: each result is the exact one, rounded once."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Final

import numpy as np
import pytest
from tests.kernels.programs import evaluate, evaluate_all, every_pair, number

HALVES: Final = (0x0000, 0x8000, 0x3C00, 0xBC01, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x3555, 0x6400)
BFLOATS: Final = (0x0000, 0x8000, 0x3F80, 0xBF81, 0x0001, 0x807F, 0x0080, 0x7F7F, 0x7F80, 0x4040, 0x3EAA)
CONSTANTS: Final = {"f16": (5, 10), "bf16": (8, 7)}


def value_of(type_: str, raw: int) -> float:
    return number("f16", raw) if type_ == "f16" else number("f32", raw << 16)


def nearest(type_: str, exact: Fraction) -> int:
    """Return the bits of a positive exact value in a format, rounded to nearest even."""
    exponent_bits, fraction_bits = CONSTANTS[type_]
    bias = (1 << exponent_bits - 1) - 1
    if not exact:
        return 0
    exponent = max(math.floor(math.log2(exact)) if exact else 0, 1 - bias)
    while Fraction(2) ** exponent > exact and exponent > 1 - bias:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= exact:
        exponent += 1
    units = round(exact / Fraction(2) ** (exponent - fraction_bits))
    return min(units + (exponent + bias - 1 << fraction_bits), (1 << exponent_bits) - 1 << fraction_bits)


def rounded(type_: str, exact: Fraction) -> int:
    return nearest(type_, exact) if exact >= 0 else 0x8000 | nearest(type_, -exact)


def exact_result(type_: str, name: str, raws: tuple[int, ...]) -> Fraction | None:
    values = [value_of(type_, raw) for raw in raws]
    if not all(math.isfinite(value) for value in values):
        return None
    parts = [Fraction(value) for value in values]
    return {
        "add": lambda: parts[0] + parts[1],
        "sub": lambda: parts[0] - parts[1],
        "mul": lambda: parts[0] * parts[1],
        "fma.rn": lambda: parts[0] * parts[1] + parts[-1],
    }[name]()


@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_two_sources(type_: str, name: str) -> None:
    first, second = every_pair(type_, HALVES if type_ == "f16" else BFLOATS)
    found = evaluate(f"{name}.{type_} %x, %a, %b;", first, second, result=type_)
    for a, b, result in zip(first[1], second[1], found, strict=True):
        exact = exact_result(type_, name, (int(a), int(b)))
        if exact is not None:
            assert (result & 0x7FFF if not exact else result) == rounded(type_, exact), (hex(int(a)), hex(int(b)))


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_a_fused_product_is_rounded_once(type_: str) -> None:
    values = (HALVES if type_ == "f16" else BFLOATS)[2:8]
    rows = list(itertools.product(values, repeat=3))
    if type_ == "f16":  # rounded to a float first, these would end on the wrong side
        rows += [(0x3C01, 0x3C01, 0x0001), (0x3C03, 0x3C05, 0x8001), (0x4400, 0x3C01, 0x1001)]
    sources = [(type_, [row[n] for row in rows]) for n in range(3)]
    found = evaluate(f"fma.rn.{type_} %x, %a, %b, %c;", *sources, result=type_)
    for row, result in zip(rows, found, strict=True):
        exact = exact_result(type_, "fma.rn", row)
        if exact is not None:
            assert (result & 0x7FFF if not exact else result) == rounded(type_, exact), [hex(each) for each in row]


def test_random_fused_products_against_exact_arithmetic() -> None:
    generator = np.random.default_rng(7)
    rows = generator.integers(0, 1 << 16, (400, 3)).tolist()
    rows = [row for row in rows if all(math.isfinite(value_of("f16", each)) for each in row)]
    found = evaluate("fma.rn.f16 %x, %a, %b, %c;", *[("f16", [row[n] for row in rows]) for n in range(3)], result="f16")
    for row, result in zip(rows, found, strict=True):
        exact = exact_result("f16", "fma.rn", tuple(row))
        assert exact is not None
        assert result == rounded("f16", exact), [hex(each) for each in row]


def test_two_numbers_in_a_register() -> None:
    first, second = ("b32", [0x3C004000]), ("b32", [0x40003C00])  # 2 and 1; 1 and 2
    added, negated, least = evaluate_all(
        "add.f16x2 %x, %a, %b;\nneg.f16x2 %y, %a;\nmin.f16x2 %z, %a, %b;", [first, second], ["b32"] * 3
    )
    assert (added, negated, least) == ([0x42004200], [0xBC00C000], [0x3C003C00])


NAN: Final = {"f16": 0x7E01, "bf16": 0x7FC1}


def chosen(type_: str, name: str, a: int, b: int, modifiers: str) -> set[int]:
    """Return what may be chosen of two numbers; between zeros of both signs the ISA leaves the choice open."""
    subnormal = 0x7C00 if type_ == "f16" else 0x7F80
    if "ftz" in modifiers:
        a, b = (each & 0x8000 if not each & subnormal else each for each in (a, b))
    sign = (a ^ b) & 0x8000 if "xorsign" in modifiers else 0
    if "xorsign" in modifiers:
        a, b = a & 0x7FFF, b & 0x7FFF
    first, second = value_of(type_, a), value_of(type_, b)
    if math.isnan(first) or math.isnan(second):
        if "NaN" in modifiers or (math.isnan(first) and math.isnan(second)):
            return {0x7FFF}
        return {(b if math.isnan(first) else a) | sign}
    if first == second:
        return {a | sign, b | sign}
    return {(a if (first < second) == (name == "min") else b) | sign}


@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("modifiers", ["", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz"])
def test_the_least_and_the_greatest(name: str, type_: str, modifiers: str) -> None:
    if (type_, modifiers) == ("bf16", ".ftz"):
        return  # the ISA has no such form
    values = (*(HALVES if type_ == "f16" else BFLOATS), NAN[type_])
    first, second = every_pair(type_, values)
    found = evaluate(f"{name}{modifiers}.{type_} %x, %a, %b;", first, second, result=type_)
    for a, b, result in zip(first[1], second[1], found, strict=True):
        assert result in chosen(type_, name, int(a), int(b), modifiers), (hex(int(a)), hex(int(b)), hex(result))


def test_each_half_has_a_choice_of_its_own() -> None:
    first, second = ("b32", [0xC0013C00, 0x3C01C000]), ("b32", [0x3C004001, 0xBC003C03])
    found = evaluate("max.xorsign.abs.f16x2 %x, %a, %b;", first, second, result="b32")
    assert found == [0xC0014001, 0xBC01C000]


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_signs(type_: str) -> None:
    values = HALVES if type_ == "f16" else BFLOATS
    source = (type_, values)
    negated, positive = evaluate_all(f"neg.{type_} %x, %a;\nabs.{type_} %y, %a;", [source], [type_, type_])
    assert negated == [each ^ 0x8000 for each in values]
    assert positive == [each & 0x7FFF for each in values]


def test_saturation_and_relu() -> None:
    rows = [(0x4000, 0x3C00), (0xC000, 0x3C00), (0x7E00, 0x3C00)]
    sources = [("f16", [row[n] for row in rows]) for n in range(2)]
    saturated, positive = evaluate_all(
        "add.sat.f16 %x, %a, %b;\nfma.rn.relu.f16 %y, %a, %b, %b;", sources, ["f16", "f16"]
    )
    assert saturated == [0x3C00, 0, 0]
    assert positive == [0x4200, 0, 0x7FFF]


def test_flushed_subnormals() -> None:
    assert evaluate("mul.ftz.f16 %x, %a, %b;", ("f16", [0x0001, 0x8400]), ("f16", [0x3C00, 0x3800]), result="f16") == [
        0,
        0x8000,
    ]


def test_approximations() -> None:
    exponent, tangent = evaluate_all(
        "ex2.approx.f16 %x, %a;\ntanh.approx.f16 %y, %a;", [("f16", [0x3C00, 0x0000])], ["f16", "f16"]
    )
    assert exponent == [0x4000, 0x3C00]
    assert number("f16", tangent[0]) == pytest.approx(math.tanh(1), rel=1e-3)
