"""Instructions for video, of whole words and of short integers side by side, against Python's integers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import pytest
from tests.kernels.programs import evaluate

_COMPUTED: Final[dict[str, Callable[[int, int], int]]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}


def _lanes(word: int, count: int, type_: str) -> list[int]:
    bits = 32 // count
    lanes = [word >> bits * number & ((1 << bits) - 1) for number in range(count)]
    return [lane - (1 << bits) if type_ == "s32" and lane >> (bits - 1) else lane for lane in lanes]


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("type_", ["u32", "s32"])
@pytest.mark.parametrize("how", ["", ".sat", ".add"])
@pytest.mark.parametrize("operation", _COMPUTED)
def test_lanes(operation: str, how: str, type_: str, count: int) -> None:
    generator = random.Random(1)
    a, b, c = ([generator.getrandbits(32) for _ in range(50)] for _ in range(3))
    a[:2], b[:2] = [0, 0xFFFFFFFF], [0xFFFFFFFF, 0x80008080]
    line = f"{operation}{count}.{type_}.{type_}.{type_}{how} %x, %a, %b, %c;"
    found = evaluate(line, ("b32", a), ("b32", b), ("b32", c), result="b32")
    bits = 32 // count
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_ == "s32" else (0, (1 << bits) - 1)
    for one, other, third, result in zip(a, b, c, found, strict=True):
        lanes = zip(_lanes(one, count, type_), _lanes(other, count, type_), strict=True)
        values = [_COMPUTED[operation](*pair) for pair in lanes]
        if how == ".sat":
            values = [min(max(value, low), high) for value in values]
        if how == ".add":
            assert result == (third + sum(values)) & 0xFFFFFFFF
        else:
            assert result == sum((value & ((1 << bits) - 1)) << bits * number for number, value in enumerate(values))


_OF_WORDS: Final[dict[str, Callable[[int, int], int]]] = {
    **{name: _COMPUTED[name] for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")},
    "vshl.clamp": lambda a, b: a << min(b, 32),
    "vshl.wrap": lambda a, b: a << (b & 31),
    "vshr.clamp": lambda a, b: a >> min(b, 32),
    "vshr.wrap": lambda a, b: a >> (b & 31),
}


def _word(value: int, type_: str) -> int:
    return value - (1 << 32) if type_ == "s32" and value >> 31 else value


@pytest.mark.parametrize("second", ["", ".add", ".min", ".max"])
@pytest.mark.parametrize("types", [("u32", "u32", "u32"), ("s32", "s32", "u32"), ("u32", "s32", "u32")])
@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize("operation", _OF_WORDS)
def test_words(operation: str, saturates: bool, types: tuple[str, str, str], second: str) -> None:
    to, first_type, other_type = types
    generator = random.Random(1)
    a, b, c = ([generator.getrandbits(32) for _ in range(50)] for _ in range(3))
    a[:4], b[:4] = [0, 0xFFFFFFFF, 0x80000000, 0xFFFFFFFF], [0xFFFFFFFF, 0x80000000, 0, 32]
    if operation.startswith("vsh"):
        b[4:] = [number - 4 for number in range(4, 50)]
    name, _, mode = operation.partition(".")
    words = ".".join(filter(None, [name, *types, "sat" if saturates else "", mode]))
    third = ", %c" if second else ""
    found = evaluate(f"{words}{second} %x, %a, %b{third};", ("b32", a), ("b32", b), ("b32", c), result="b32")
    low, high = (-(1 << 31), (1 << 31) - 1) if to == "s32" else (0, (1 << 32) - 1)
    combine: dict[str, Callable[[int, int], int]] = {".add": lambda one, other: one + other, ".min": min, ".max": max}
    for one, other, more, result in zip(a, b, c, found, strict=True):
        value = _OF_WORDS[operation](_word(one, first_type), _word(other, other_type))
        value = min(max(value, low), high) if saturates else value
        if second:
            value = combine[second](_word(value & 0xFFFFFFFF, to), _word(more, to))
        assert result == value & 0xFFFFFFFF
