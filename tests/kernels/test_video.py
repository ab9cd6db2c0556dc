"""Short integers side by side: SIMD instructions for video, against Python's integers."""

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
