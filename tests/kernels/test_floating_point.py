"""Arithmetic of floats and doubles: rounding, flushed subnormals, NaN and signed zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import pytest
from tests.kernels.programs import bits, evaluate, evaluate_all, every_pair, number

INFINITY: Final = math.inf
TINY: Final = {"f32": 2.0**-149, "f64": 2.0**-1074}
SMALLEST_NORMAL: Final = 2.0**-126
EDGES: Final[tuple[float, ...]] = (0.0, -0.0, 1.0, -1.5, 0.1, 1e30, -1e-30, INFINITY, -INFINITY, math.nan, 3.0)


def is_same(type_: str, found: int, expected: float) -> bool:
    if math.isnan(expected):
        return math.isnan(number(type_, found))
    return found == bits(type_, expected)


def round_to(type_: str, exact: Fraction, mode: str) -> float:
    """Return the number of a type next to an exact value, in one direction, for values that are in its range."""
    nearest = float(exact) if type_ == "f64" else number("f32", bits("f32", float(exact)))
    step = math.nextafter if type_ == "f64" else _next_float
    wants_down = mode == "rm" or (mode == "rz" and exact > 0)
    while (Fraction(nearest) > exact) if wants_down else (Fraction(nearest) < exact):
        nearest = step(nearest, -INFINITY if wants_down else INFINITY)
    while (Fraction(step(nearest, INFINITY)) <= exact) if wants_down else (Fraction(step(nearest, -INFINITY)) >= exact):
        nearest = step(nearest, INFINITY if wants_down else -INFINITY)
    return nearest


def _next_float(value: float, towards: float) -> float:
    raw = bits("f32", value)
    if value == 0:
        return math.copysign(TINY["f32"], towards)
    return number("f32", raw + (1 if (towards > value) == (value > 0) else -1))


@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_nearest_even(name: str, type_: str) -> None:
    first, second = every_pair(type_, EDGES)
    found = evaluate(f"{name}.{type_} %x, %a, %b;", first, second, result=type_)
    for a, b, result in zip(first[1], second[1], found, strict=True):
        left, right = (float(v) if type_ == "f64" else number("f32", bits("f32", v)) for v in (a, b))
        try:
            exact = {"add": left + right, "sub": left - right, "mul": left * right}[name]
            expected = exact if type_ == "f64" else number("f32", bits("f32", exact))
        except OverflowError:
            expected = math.copysign(INFINITY, exact)
        assert is_same(type_, result, expected), (a, b)


PAIRS: Final = ((1.0, 3.0), (-1.0, 3.0), (0.1, 0.7), (1e10, -3.3), (1.0, 1e-9), (-7.5, 0.3))


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_directed_rounding(type_: str, mode: str) -> None:
    values = [[number(type_, bits(type_, pair[n])) for pair in PAIRS] for n in range(2)]
    results = evaluate_all(
        f"add.{mode}.{type_} %x, %a, %b;\nmul.{mode}.{type_} %y, %a, %b;\n"
        f"div.{mode}.{type_} %z, %a, %b;\nfma.{mode}.{type_} %w, %a, %b, %a;",
        [(type_, values[0]), (type_, values[1])],
        [type_] * 4,
    )
    for a, b, *found in zip(*values, *results, strict=True):
        left, right = Fraction(a), Fraction(b)
        exact = (left + right, left * right, left / right, left * right + left)
        assert [number(type_, each) for each in found] == [round_to(type_, each, mode) for each in exact]


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_directed_rounding_of_roots_and_reciprocals(type_: str, mode: str) -> None:
    values = [2.0, 3.0, 10.0, 0.3]
    roots, reciprocals = evaluate_all(
        f"sqrt.{mode}.{type_} %x, %a;\nrcp.{mode}.{type_} %y, %a;", [(type_, values)], [type_, type_]
    )
    for value, root, reciprocal in zip(values, roots, reciprocals, strict=True):
        source = Fraction(number(type_, bits(type_, value)))
        assert number(type_, reciprocal) == round_to(type_, 1 / source, mode)
        near = Fraction(number(type_, root))
        step = Fraction(math.ulp(float(near)) if type_ == "f64" else _next_float(float(near), INFINITY)) - (
            0 if type_ == "f64" else near
        )
        assert (near**2 <= source < (near + step) ** 2) if mode != "rp" else ((near - step) ** 2 < source <= near**2)


def test_nothing_is_contracted() -> None:
    """A product and a sum are rounded twice; only 'fma' rounds once."""
    a = number("f32", 0x3F800001)
    twice, once = evaluate_all(
        "mul.f32 %x, %a, %a;\nsub.f32 %x, %x, %b;\nfma.rn.f32 %y, %a, %a, %c;",
        [("f32", [a]), ("f32", [number("f32", 0x3F800002)]), ("f32", [-number("f32", 0x3F800002)])],
        ["f32", "f32"],
    )
    assert number("f32", twice[0]) == 0.0
    assert number("f32", once[0]) == 2.0**-46


def test_subnormals_are_kept_or_flushed() -> None:
    small = number("f32", 0x00400001)
    kept, flushed, result = evaluate_all(
        "add.f32 %x, %a, %b;\nadd.ftz.f32 %y, %a, %b;\nmul.ftz.f32 %z, %c, %d;",
        [
            ("f32", [small, -small]),
            ("f32", [0.0, -0.0]),
            ("f32", [SMALLEST_NORMAL, -SMALLEST_NORMAL]),
            ("f32", [0.5, 0.5]),
        ],
        ["f32"] * 3,
    )
    assert kept == [0x00400001, 0x80400001]
    assert flushed == [0, 0x80000000]
    assert result == [0, 0x80000000]


def test_saturation() -> None:
    values = (-1.0, -0.0, 0.25, 1.0, 7.0, math.nan, INFINITY)
    found = evaluate("add.sat.f32 %x, %a, %b;", ("f32", values), ("f32", [0.0] * len(values)), result="f32")
    assert found == [bits("f32", value) for value in (0.0, 0.0, 0.25, 1.0, 1.0, 0.0, 1.0)]


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_least_and_greatest(type_: str) -> None:
    rows = [(1.0, 2.0), (0.0, -0.0), (-0.0, 0.0), (math.nan, 3.0), (3.0, math.nan), (math.nan, math.nan)]
    least, greatest = evaluate_all(
        f"min.{type_} %x, %a, %b;\nmax.{type_} %y, %a, %b;",
        [(type_, [row[n] for row in rows]) for n in range(2)],
        [type_, type_],
    )
    assert least[:5] == [bits(type_, value) for value in (1.0, -0.0, -0.0, 3.0, 3.0)]
    assert greatest[:5] == [bits(type_, value) for value in (2.0, 0.0, 0.0, 3.0, 3.0)]
    assert math.isnan(number(type_, least[5]))


def test_least_and_greatest_with_modifiers() -> None:
    rows = [(-3.0, 2.0), (math.nan, 1.0)]
    with_nan, signed = evaluate_all(
        "min.NaN.f32 %x, %a, %b;\nmax.xorsign.abs.f32 %y, %a, %b;",
        [("f32", [row[n] for row in rows]) for n in range(2)],
        ["f32", "f32"],
    )
    assert with_nan[0] == bits("f32", -3.0)
    assert math.isnan(number("f32", with_nan[1]))
    assert signed[0] == bits("f32", -3.0)


def test_signs() -> None:
    values = (1.0, -2.5, -0.0, number("f32", 0x80000001))
    results = evaluate_all(
        "neg.f32 %x, %a;\nabs.f32 %y, %a;\nneg.ftz.f32 %z, %a;\ncopysign.f32 %w, %a, %b;",
        [("f32", values), ("f32", [7.0] * 4)],
        ["f32"] * 4,
    )
    assert results[0] == [bits("f32", -value) for value in values]
    assert results[1] == [bits("f32", abs(value)) for value in values]
    assert results[2][3] == 0
    assert results[3] == [bits("f32", math.copysign(7.0, value)) for value in values]


def test_classes() -> None:
    values = (0.0, 1.0, number("f32", 1), INFINITY, math.nan)
    names = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    expected = {
        "finite": [1, 1, 1, 0, 0],
        "infinite": [0, 0, 0, 1, 0],
        "number": [1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 1],
        "normal": [1, 1, 0, 0, 0],  # "positive and negative zero are considered normal"
        "subnormal": [0, 0, 1, 0, 0],
    }
    for group in (names[:3], names[3:]):
        lines = "".join(f"testp.{name}.f32 %{'xyz'[n]}, %a;\n" for n, name in enumerate(group))
        assert evaluate_all(lines, [("f32", values)], ["pred"] * 3) == [expected[name] for name in group]


APPROXIMATIONS: Final[dict[str, Callable[[float], float]]] = {
    "sin.approx": math.sin,
    "cos.approx": math.cos,
    "ex2.approx": lambda x: 2.0**x,
    "tanh.approx": math.tanh,
    "rcp.approx": lambda x: 1 / x,
    "sqrt.approx": lambda x: math.sqrt(abs(x)),
    "rsqrt.approx": lambda x: 1 / math.sqrt(abs(x)),
    "lg2.approx": lambda x: math.log2(abs(x)),
}


@pytest.mark.parametrize("name", APPROXIMATIONS)
def test_approximations_are_close(name: str) -> None:
    values = [0.1, 0.5, 1.0, 1.7, 2.5, -0.3, -2.0]
    values = values if not name.startswith(("sqrt", "rsqrt", "lg2")) else [abs(value) for value in values]
    found = evaluate(f"{name}.f32 %x, %a;", ("f32", values), result="f32")
    for value, result in zip(values, found, strict=True):
        assert number("f32", result) == pytest.approx(APPROXIMATIONS[name](value), rel=3e-7, abs=1e-7)


def test_special_values_of_approximations() -> None:
    rcp, rsqrt, lg2, ex2 = evaluate_all(
        "rcp.approx.ftz.f32 %x, %a;\nrsqrt.approx.f32 %y, %a;\nlg2.approx.f32 %z, %a;\nex2.approx.f32 %w, %a;",
        [("f32", (0.0, -0.0, INFINITY))],
        ["f32"] * 4,
    )
    assert [number("f32", each) for each in rcp] == [INFINITY, -INFINITY, 0.0]
    assert [number("f32", each) for each in rsqrt] == [INFINITY, -INFINITY, 0.0]
    assert [number("f32", each) for each in lg2] == [-INFINITY, -INFINITY, INFINITY]
    assert [number("f32", each) for each in ex2] == [1.0, 1.0, INFINITY]


def test_approximations_for_doubles_have_a_high_word_only() -> None:
    reciprocals, roots = evaluate_all(
        "rcp.approx.ftz.f64 %x, %a;\nrsqrt.approx.ftz.f64 %y, %a;", [("f64", (3.0, 7.0))], ["f64", "f64"]
    )
    assert [each & 0xFFFFFFFF for each in (*reciprocals, *roots)] == [0] * 4
    assert [number("f64", each) for each in reciprocals] == pytest.approx([1 / 3, 1 / 7], rel=2e-6)
