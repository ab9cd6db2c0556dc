"""Conversions: between widths, to and from numbers with a fraction, saturated and rounded."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import pytest
from tests.kernels.programs import bits, evaluate, evaluate_all, number, width_of
from tests.kernels.test_floating_point import round_to
from tests.kernels.test_half_precision import rounded

INTEGERS: Final = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")

TO_WHOLE: Final[tuple[Callable[[float], int], ...]] = (round, math.floor, math.ceil, math.trunc)


def limits(type_: str) -> tuple[int, int]:
    width = width_of(type_)
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if type_[0] == "s" else (0, (1 << width) - 1)


def value_of(type_: str, raw: int) -> int:
    width = width_of(type_)
    raw &= (1 << width) - 1
    return raw - (1 << width) if type_[0] == "s" and raw >> (width - 1) else raw


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_between_integers(source: str, target: str) -> None:
    width = max(16, width_of(source))
    raws = (0, 1, 0x7F, 0x80, 0xFF, 0x8000, 0xFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)
    values = [raw & ((1 << width) - 1) for raw in raws]
    result = f"b{max(16, width_of(target))}"
    low, high = limits(target)
    saturates = ".sat" if not low <= limits(source)[0] <= limits(source)[1] <= high else ""  # else it is no word
    plain, saturated = evaluate_all(
        f"cvt.{target}.{source} %x, %a;\ncvt{saturates}.{target}.{source} %y, %a;",
        [(f"b{width}", values)],
        [result, result],
    )
    for value, x, y in zip(values, plain, saturated, strict=True):
        exact = value_of(source, value)
        assert x == bits(result, value_of(target, exact))
        assert y == bits(result, max(low, min(high, exact)))


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", INTEGERS)
def test_to_integers(source: str, target: str) -> None:
    """What is out of range becomes the nearest value; NaN is 0, or the highest bit where 64 bits take part."""
    values = [0.0, -0.0, 1.5, 2.5, -1.5, -2.5, 0.49, 1e30, -1e30, math.inf, -math.inf, 200.7, -200.7]
    low, high = limits(target)
    result = f"b{max(16, width_of(target))}"
    to_nearest, down, up, cut = evaluate_all(
        "".join(
            f"cvt.{mode}.{target}.{source} %{'xyzw'[n]}, %a;\n" for n, mode in enumerate(("rni", "rmi", "rpi", "rzi"))
        ),
        [(source, values)],
        [result] * 4,
    )
    for value, *found in zip(values, to_nearest, down, up, cut, strict=True):
        for operation, each in zip(TO_WHOLE, found, strict=True):
            whole = operation(value) if math.isfinite(value) else (high if value > 0 else low)
            assert each == bits(result, max(low, min(high, whole)))
    (of_nan,) = evaluate(f"cvt.rzi.{target}.{source} %x, %a;", (source, [math.nan]), result=result)
    highest = 1 << (width_of(target) - 1)
    assert of_nan == (bits(result, value_of(target, highest)) if "64" in source + target else 0)


SOURCES: Final = {
    "s32": (0, 1, -1, 2**24 + 1, -(2**24) - 3, 2**31 - 1, -(2**31)),
    "u32": (0, 1, 2**24 + 1, 2**32 - 1),
    "s64": (0, -1, 2**53 + 1, -(2**53) - 3, 2**63 - 1, -(2**63), 2**40 + 2**16 + 1),
    "u64": (0, 2**53 + 1, 2**64 - 1, 2**63 + 2**10 + 1),
    "u16": (0, 65535),
    "s16": (-32768, 32767),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", ["f32", "f64"])
def test_from_integers(source: str, target: str) -> None:
    values = SOURCES[source]
    modes = ("rn", "rz", "rm", "rp")
    results = evaluate_all(
        "".join(f"cvt.{mode}.{target}.{source} %{'xyzw'[n]}, %a;\n" for n, mode in enumerate(modes)),
        [(source, values)],
        [target] * 4,
    )
    for value, nearest, *directed in zip(values, *results, strict=True):
        exact = Fraction(value)
        down, up = (Fraction(round_to(target, exact, mode)) for mode in ("rm", "rp"))
        assert abs(Fraction(number(target, nearest)) - exact) <= min(exact - down, up - exact)
        assert [number(target, each) for each in directed] == [round_to(target, exact, mode) for mode in modes[1:]]


@pytest.mark.parametrize("target", ["f16", "bf16"])
@pytest.mark.parametrize("source", SOURCES)
def test_from_integers_to_16_bits(source: str, target: str) -> None:
    found = evaluate(f"cvt.rn.{target}.{source} %x, %a;", (source, SOURCES[source]), result=target)
    assert found == [rounded(target, Fraction(value)) for value in SOURCES[source]]


def test_from_double_to_float() -> None:
    values = (0.1, -0.1, 1e-40, 1e40, 1.0 + 2.0**-30)
    modes = ("rn", "rz", "rm", "rp")
    results = evaluate_all(
        "".join(f"cvt.{mode}.f32.f64 %{'xyzw'[n]}, %a;\n" for n, mode in enumerate(modes)),
        [("f64", values)],
        ["f32"] * 4,
    )
    for place, value in enumerate(values):
        if value == 1e40:
            largest = number("f32", 0x7F7FFFFF)
            assert [number("f32", each[place]) for each in results] == [math.inf, largest, largest, math.inf]
        else:
            expected = [round_to("f32", Fraction(value), mode) for mode in modes[1:]]
            assert [number("f32", each[place]) for each in results[1:]] == expected
    (flushed,) = evaluate("cvt.rn.ftz.f32.f64 %x, %a;", ("f64", [-1e-40]), result="f32")
    assert flushed == 0x80000000


@pytest.mark.parametrize("target", ["f16", "bf16"])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_to_16_bits(source: str, target: str) -> None:
    values = [number(source, bits(source, each)) for each in (0.1, -3.3, 1e-6, 70000.0, 1.0009765625, 6.1e-5, 1e-41)]
    found = evaluate(f"cvt.rn.{target}.{source} %x, %a;", (source, values), result=target)
    assert found == [rounded(target, Fraction(value)) for value in values]
    back = evaluate(f"cvt.f32.{target} %x, %a;", (target, found), result="f32")
    expected = [number("f16", each) if target == "f16" else number("f32", each << 16) for each in found]
    assert [number("f32", each) for each in back] == expected


def test_directed_rounding_to_halves() -> None:
    towards_zero, down, up = evaluate_all(
        "cvt.rz.f16.f32 %x, %a;\ncvt.rm.f16.f32 %y, %a;\ncvt.rp.f16.f32 %z, %a;",
        [("f32", (0.1, -0.1, 70000.0, math.nan))],
        ["f16"] * 3,
    )
    assert towards_zero[:3] == [0x2E66, 0xAE66, 0x7BFF]
    assert down[:3] == [0x2E66, 0xAE67, 0x7BFF]
    assert up[:3] == [0x2E67, 0xAE66, 0x7C00]
    assert towards_zero[3] == 0x7FFF


def test_two_floats_into_one_register() -> None:
    sources = [("f32", [1.0, -1.0]), ("f32", [2.0, 0.1])]
    halves, bfloats, positive = evaluate_all(
        "cvt.rn.f16x2.f32 %x, %a, %b;\ncvt.rz.bf16x2.f32 %y, %a, %b;\ncvt.rn.relu.f16x2.f32 %z, %a, %b;",
        sources,
        ["b32"] * 3,
    )
    assert halves == [0x3C004000, 0xBC002E66]
    assert bfloats == [0x3F804000, 0xBF803DCC]
    assert positive == [0x3C004000, 0x00002E66]


def test_floats_with_short_fractions() -> None:
    found = evaluate("cvt.rna.tf32.f32 %x, %a;", ("f32", [1.0, number("f32", 0x3F801000)]), result="b32")
    assert found == [0x3F800000, 0x3F802000]


@pytest.mark.parametrize("type_", ["f32", "f64", "f16"])
def test_whole_numbers(type_: str) -> None:
    values = (0.5, 1.5, -0.5, -2.5, 2.25, math.inf)
    modes = ("rni", "rzi", "rmi", "rpi")
    results = evaluate_all(
        "".join(f"cvt.{mode}.{type_}.{type_} %{'xyzw'[n]}, %a;\n" for n, mode in enumerate(modes)),
        [(type_, values)],
        [type_] * 4,
    )
    for place, value in enumerate(values):
        for operation, each in zip((TO_WHOLE[0], TO_WHOLE[3], *TO_WHOLE[1:3]), results, strict=True):
            whole = float(operation(value)) if math.isfinite(value) else value
            assert each[place] == bits(type_, math.copysign(whole, value))


def test_saturated_numbers() -> None:
    found = evaluate("cvt.sat.f32.f32 %x, %a;", ("f32", (-1.0, 0.5, 2.0, math.nan)), result="f32")
    assert found == [bits("f32", value) for value in (0.0, 0.5, 1.0, 0.0)]


def test_packed_integers() -> None:
    sources = [("s32", [100000, -5]), ("s32", [-100000, 7])]
    halves = evaluate("cvt.pack.sat.s16.s32 %x, %a, %b;", *sources, result="b32")
    octets = evaluate("cvt.pack.sat.u8.s32.b32 %x, %a, %b, %c;", *sources, ("b32", [0x1234, 0xFFFF5678]), result="b32")
    assert halves == [0x7FFF8000, 0xFFFB0007]
    assert octets == [0x1234FF00, 0x56780007]


def test_registers_wider_than_their_type() -> None:
    """The sign fills a wider register, and only the low bits of a wider source count."""
    found = evaluate("cvt.s8.u32 %h0, %a;\ncvt.s32.s16 %x, %h0;", ("u32", [0x180, 0x7F]), result="b32")
    assert found == [0xFFFFFF80, 0x7F]


def _of_byte(format_: str, bits: int) -> float:
    """Return the number that a byte stands for, from the definition of its format."""
    exponent_bits, fraction_bits, bias = (4, 3, 7) if format_ == "e4m3" else (5, 2, 15)
    exponent, fraction = bits >> fraction_bits & ((1 << exponent_bits) - 1), bits & ((1 << fraction_bits) - 1)
    sign = -1.0 if bits >> 7 else 1.0
    if format_ == "e4m3" and bits & 0x7F == 0x7F:
        return math.nan
    if format_ == "e5m2" and exponent == 31:
        return math.nan if fraction else sign * math.inf
    size = (fraction + (1 << fraction_bits if exponent else 0)) * 2.0 ** (max(exponent, 1) - bias - fraction_bits)
    return sign * size


@pytest.mark.parametrize("format_", ["e4m3", "e5m2"])
def test_bytes_become_halves(format_: str) -> None:
    found = evaluate(f"cvt.rn.f16x2.{format_}x2 %x, %a;", ("b16", range(256)), result="b32")
    for byte, word in enumerate(found):
        value = _of_byte(format_, byte)
        assert word >> 16 == 0
        half = struct.unpack("<e", (word & 0xFFFF).to_bytes(2, "little"))[0]
        assert half == value or (math.isnan(half) and math.isnan(value))


@pytest.mark.parametrize(("format_", "largest"), [("e4m3", 0x7E), ("e5m2", 0x7B)])
def test_floats_become_the_nearest_bytes(format_: str, largest: int) -> None:
    numbers = [_of_byte(format_, bits) for bits in range(largest + 1)]
    middles = [(one + other) / 2 for one, other in itertools.pairwise(numbers)]
    values = [*numbers, *middles, math.inf, -math.inf, 1e9, math.nan, -numbers[3]]
    line = f"cvt.rn.satfinite.{format_}x2.f32 %x, %a, 0f00000000;"
    found = evaluate(line, ("f32", values), result="b16")
    even = [bits + (bits & 1) for bits in range(largest)]
    expected = [*range(largest + 1), *even, largest, largest | 0x80, largest, 0x7F, 0x83]
    assert [word >> 8 for word in found] == expected
    assert all(word & 0xFF == 0 for word in found)
