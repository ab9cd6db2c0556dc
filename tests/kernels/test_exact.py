"""Every rounding mode of arithmetic and conversions against exact fractions, on edge values and random ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from tests.kernels.exact import FORMATS, Format, Number, add, divide, multiply, negate, root
from tests.kernels.programs import evaluate


@pytest.fixture(autouse=True)
def tuned() -> None:
    """Compile each kernel in the usual way only: arithmetic is the same in both."""


MODES = ("rn", "rz", "rm", "rp")
_COUNT = 400


def _values(format_: Format, seed: int, count: int = _COUNT) -> list[int]:
    """Return bits of numbers: special ones, those at the ends of the range, and random ones that are close together."""
    generator = random.Random(seed)
    one = format_.bias << format_.fraction_bits
    infinity = ((1 << format_.exponent_bits) - 1) << format_.fraction_bits
    special = [0, 1, 2, (1 << format_.fraction_bits) - 1, 1 << format_.fraction_bits, one - 1, one, one + 1]
    special += [infinity - 1, infinity, infinity | 1 << (format_.fraction_bits - 1)]
    special += [each | 1 << (format_.bits - 1) for each in special]
    found: list[int] = []
    while len(found) < count:
        kind = generator.randrange(3)
        bits = generator.getrandbits(format_.bits)
        if kind == 0:
            bits = generator.choice(special)
        elif kind == 1:  # near one, so that sums cancel and products stay in the range
            bits = bits & 1 << (format_.bits - 1) | one + generator.randrange(-3, 4) * (1 << format_.fraction_bits)
            bits += generator.getrandbits(format_.fraction_bits)
        found.append(bits)
    return found


def _is_nan(format_: Format, bits: int) -> bool:
    return format_.read(bits) == "nan"


def _check(format_: Format, found: list[int], expected: list[int | None]) -> None:
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if other is None:
            assert _is_nan(format_, one), number
        else:
            assert f"{one:#x}" == f"{other:#x}", number


Operation = Callable[[list[Number], str], Number]
OPERATIONS: dict[str, tuple[int, Operation]] = {
    "add": (2, lambda n, r: add(n[0], n[1], r)),
    "sub": (2, lambda n, r: add(n[0], negate(n[1]), r)),
    "mul": (2, lambda n, _: multiply(n[0], n[1])),
    "div": (2, lambda n, _: divide(n[0], n[1])),
    "fma": (3, lambda n, r: add(multiply(n[0], n[1]), n[2], r)),
    "rcp": (1, lambda n, _: divide(Fraction(1), n[0])),
    "sqrt": (1, lambda n, _: root(n[0])),
}


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("type_", ["f32", "f32.ftz", "f64"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_arithmetic(operation: str, type_: str, rounding: str) -> None:
    name, _, flush = type_.partition(".")
    format_ = FORMATS[name]
    count, exact = OPERATIONS[operation]
    sources = [_values(format_, seed) for seed in range(count)]
    registers = ", ".join(("%a", "%b", "%c")[:count])
    line = f"{operation}.{rounding}{'.ftz' if flush else ''}.{name} %x, {registers};"
    found = evaluate(line, *((name, values) for values in sources), result=name)
    expected = []
    for bits in zip(*sources, strict=True):
        numbers = [format_.read(format_.flush(each) if flush else each) for each in bits]
        expected.append(format_.write(exact(numbers, rounding), rounding, flushes=bool(flush)))
    _check(format_, found, expected)


@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_arithmetic_of_halves(operation: str, type_: str) -> None:
    format_ = FORMATS[type_]
    count, exact = OPERATIONS[operation]
    sources = [_values(format_, seed) for seed in range(count)]
    line = f"{operation}.rn.{type_} %x, {', '.join(('%a', '%b', '%c')[:count])};"
    found = evaluate(line, *(("b16", values) for values in sources), result="b16")
    expected = [
        format_.write(exact([format_.read(each) for each in bits], "rn")) for bits in zip(*sources, strict=True)
    ]
    _check(format_, found, expected)


def _stored(type_: str) -> str:
    return "b16" if type_ in ("f16", "bf16") else type_


NARROWING = [
    *(("f64", "f32"), ("f64", "f16"), ("f64", "bf16"), ("f32", "f16"), ("f32", "bf16")),
    *(("f16", "bf16"), ("bf16", "f16")),
]


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize(("source", "target"), NARROWING)
def test_conversions_to_shorter_formats(source: str, target: str, rounding: str) -> None:
    values = _values(FORMATS[source], 7) + _between(FORMATS[source], FORMATS[target])
    line = f"cvt.{rounding}.{target}.{source} %x, %a;"
    found = evaluate(line, (_stored(source), values), result=_stored(target))
    expected = [FORMATS[target].write(FORMATS[source].read(bits), rounding) for bits in values]
    _check(FORMATS[target], found, expected)


def _between(source: Format, target: Format) -> list[int]:
    """Return numbers of the longer format that lie at, and next to, the middle between two of the shorter one."""
    found = []
    for bits in _values(target, 3, 60):
        first, second = target.read(bits), target.read((bits + 1) & ((1 << target.bits) - 1))
        if isinstance(first, Fraction) and isinstance(second, Fraction):
            middle = source.write((first + second) / 2)
            found += [middle, middle ^ 1] if middle is not None else []
    return found[:100]


INTEGERS = {"u8": 8, "s8": 8, "u16": 16, "s16": 16, "u32": 32, "s32": 32, "u64": 64, "s64": 64}


def _whole(value: Fraction, how: str) -> int:
    below = value.numerator // value.denominator
    if how == "rmi" or value == below:
        return below
    if how == "rpi":
        return below + 1
    if how == "rzi":
        return below if value > 0 else below + 1
    rest = value - below
    return below + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1))


@pytest.mark.parametrize("how", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("target", INTEGERS)
def test_conversions_to_integers_saturate(target: str, source: str, how: str) -> None:
    format_, bits_ = FORMATS[source], INTEGERS[target]
    low, high = (-(1 << (bits_ - 1)), (1 << (bits_ - 1)) - 1) if target[0] == "s" else (0, (1 << bits_) - 1)
    edges = [format_.write(Fraction(edge) + Fraction(more, 2)) for edge in (low, high) for more in range(-4, 5)]
    values = _values(format_, 11) + [each for each in edges if each is not None]
    register = max(16, bits_)
    found = evaluate(f"cvt.{how}.{target}.{source} %x, %a;", (_stored(source), values), result=f"b{register}")
    for bits, one in zip(values, found, strict=True):
        number = format_.read(bits)
        if number == "nan":
            continue
        limited = {"inf": high, "-inf": low, "-0": 0}.get(str(number))
        if limited is None:
            assert isinstance(number, Fraction)
            limited = min(max(_whole(number, how), low), high)
        assert one == limited & ((1 << register) - 1), f"{bits:#x}"


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_conversions_from_integers(source: str, target: str, rounding: str) -> None:
    bits_ = INTEGERS[source]
    generator = random.Random(5)
    values = [0, 1, (1 << bits_) - 1, 1 << (bits_ - 1), (1 << (bits_ - 1)) - 1]
    values += [generator.getrandbits(bits_) >> generator.randrange(bits_) for _ in range(200)]
    register = max(16, bits_)
    found = evaluate(f"cvt.{rounding}.{target}.{source} %x, %a;", (f"b{register}", values), result=_stored(target))
    expected = []
    for value in values:
        signed = value - (1 << bits_) if source[0] == "s" and value >> (bits_ - 1) else value
        expected.append(FORMATS[target].write(Fraction(signed), rounding))
    _check(FORMATS[target], found, expected)
