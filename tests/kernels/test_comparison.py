"""Comparison and selection, by the rules of the ISA."""

from __future__ import annotations

import math
import operator
from typing import Final

import pytest
from tests.kernels.programs import bits, evaluate, evaluate_all, every_pair, number, width_of

RELATIONS: Final = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_integers(type_: str) -> None:
    width = width_of(type_)
    first, second = every_pair(type_, (0, 1, (1 << width) - 1, 1 << (width - 1)))
    for names in (("eq", "ne", "lt"), ("le", "gt", "ge")):
        lines = "".join(f"setp.{name}.{type_} %{'xyz'[n]}, %a, %b;\n" for n, name in enumerate(names))
        results = evaluate_all(lines, [first, second], ["pred"] * 3)
        for a, b, *found in zip(first[1], second[1], *results, strict=True):
            values = [int(v) - (1 << width) if type_[0] == "s" and int(v) >> (width - 1) else int(v) for v in (a, b)]
            assert found == [int(RELATIONS[name](*values)) for name in names]


def test_unsigned_names() -> None:
    first, second = every_pair("u32", (1, 0x80000000))
    results = evaluate_all(
        "setp.lo.u32 %x, %a, %b;\nsetp.ls.u32 %y, %a, %b;\nsetp.hi.u32 %z, %a, %b;\nsetp.hs.u32 %w, %a, %b;",
        [first, second],
        ["pred"] * 4,
    )
    assert results == [[0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 1, 1]]


@pytest.mark.parametrize("type_", ["f32", "f64", "f16"])
def test_numbers_with_a_fraction(type_: str) -> None:
    """An ordered comparison with NaN is false, an unordered one is true."""
    first, second = every_pair(type_, (0.0, -0.0, 1.0, math.nan, math.inf))
    for name, relation in RELATIONS.items():
        ordered, unordered = evaluate_all(
            f"setp.{name}.{type_} %x, %a, %b;\nsetp.{name}u.{type_} %y, %a, %b;", [first, second], ["pred", "pred"]
        )
        for a, b, x, y in zip(first[1], second[1], ordered, unordered, strict=True):
            is_unordered = math.isnan(a) or math.isnan(b)
            assert (x, y) == ((0, 1) if is_unordered else (int(relation(a, b)),) * 2)
    both, neither = evaluate_all(
        f"setp.num.{type_} %x, %a, %b;\nsetp.nan.{type_} %y, %a, %b;", [first, second], ["pred", "pred"]
    )
    assert [x + y for x, y in zip(both, neither, strict=True)] == [1] * len(first[1])


def test_flushed_subnormals_are_equal_to_zero() -> None:
    small = number("f32", 1)
    kept, flushed = evaluate_all(
        "setp.gt.f32 %x, %a, %b;\nsetp.gt.ftz.f32 %y, %a, %b;", [("f32", [small]), ("f32", [0.0])], ["pred", "pred"]
    )
    assert (kept, flushed) == ([1], [0])


def test_two_destinations_and_a_third_source() -> None:
    first, second = every_pair("u32", (1, 2))
    third = ("pred", [0, 1, 0, 1])
    results = evaluate_all(
        "setp.lt.and.u32 %x|%y, %a, %b, %c;\nsetp.lt.xor.u32 %z, %a, %b, !%c;", [first, second, third], ["pred"] * 3
    )
    assert results == [[0, 1, 0, 0], [0, 0, 0, 1], [1, 1, 1, 0]]


def test_values_from_comparisons() -> None:
    first, second = every_pair("s32", (-1, 1))
    ones, floats = evaluate_all(
        "set.lt.u32.s32 %x, %a, %b;\nset.ge.f32.s32 %y, %a, %b;", [first, second], ["u32", "f32"]
    )
    assert ones == [0, 0xFFFFFFFF, 0, 0]
    assert floats == [bits("f32", value) for value in (1.0, 0.0, 1.0, 1.0)]


def test_two_halves() -> None:
    sources = [("b32", [0x3C004000]), ("b32", [0x3C003C00])]  # 2 and 1; 1 and 1
    low, high = evaluate_all("setp.gt.f16x2 %x|%y, %a, %b;", sources, ["pred", "pred"])
    (found,) = evaluate("set.gt.f16x2.f16x2 %x, %a, %b;", *sources, result="b32")
    assert (low, high, found) == ([1], [0], 0x00003C00)


@pytest.mark.parametrize("type_", ["b16", "b32", "b64", "f32", "f64"])
def test_selection_by_a_predicate(type_: str) -> None:
    sources = [(type_, [1, 2]), (type_, [3, 4]), ("pred", [1, 0])]
    assert evaluate(f"selp.{type_} %x, %a, %b, %c;", *sources, result=type_) == [1, 4]


def test_selection_by_a_sign() -> None:
    by_integer = evaluate(
        "slct.u32.s32 %x, %a, %b, %c;", ("u32", [1] * 3), ("u32", [2] * 3), ("s32", [0, -1, 5]), result="u32"
    )
    by_float = evaluate(
        "slct.u32.f32 %x, %a, %b, %c;",
        ("u32", [1] * 4),
        ("u32", [2] * 4),
        ("f32", [-0.0, -1.0, math.nan, 2.0]),
        result="u32",
    )
    assert (by_integer, by_float) == ([1, 2, 1], [1, 2, 2, 1])
