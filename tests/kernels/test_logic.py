"""Logic, shifts and bit fields, by the rules of the ISA."""

from __future__ import annotations

import itertools
from typing import Final

import pytest
from tests.kernels.programs import Source, evaluate, evaluate_all, every_pair, width_of

WORDS: Final = {
    16: (0, 1, 0x8000, 0xFFFF, 0x1234),
    32: (0, 1, 0x80000000, 0xFFFFFFFF, 0x12345678, 0x89ABCDEF),
    64: (0, 1, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0x0123456789ABCDEF),
}
AMOUNTS: Final = (0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 0xFFFFFFFF)


def signed(bits: int, value: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(bits: int) -> None:
    first, second = every_pair(f"b{bits}", WORDS[bits])
    results = evaluate_all(
        f"and.b{bits} %x, %a, %b;\nor.b{bits} %y, %a, %b;\nxor.b{bits} %z, %a, %b;\nnot.b{bits} %w, %a;",
        [first, second],
        [f"b{bits}"] * 4,
    )
    for a, b, *found in zip(first[1], second[1], *results, strict=True):
        left, right = int(a), int(b)
        assert found == [left & right, left | right, left ^ right, left ^ (1 << bits) - 1]


def test_logic_of_predicates() -> None:
    first, second = every_pair("pred", (0, 1))
    results = evaluate_all(
        "and.pred %x, %a, %b;\nor.pred %y, %a, !%b;\nxor.pred %z, %a, %b;\nnot.pred %w, %a;",
        [first, second],
        ["pred"] * 4,
    )
    assert results == [[0, 0, 0, 1], [1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0]]


def test_one_where_the_source_is_zero() -> None:
    assert evaluate("cnot.b32 %x, %a;", ("b32", (0, 1, 2)), result="b32") == [1, 0, 0]


@pytest.mark.parametrize("type_", ["b16", "b32", "b64"])
def test_shift_to_the_left(type_: str) -> None:
    bits = width_of(type_)
    pairs = list(itertools.product(WORDS[bits], AMOUNTS))
    found = evaluate(
        f"shl.{type_} %x, %a, %b;", (type_, [a for a, _ in pairs]), ("u32", [b for _, b in pairs]), result=type_
    )
    assert found == [(value << amount) % (1 << bits) if amount < bits else 0 for value, amount in pairs]


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32", "b32", "u64", "s64"])
def test_shift_to_the_right_beyond_the_width_too(type_: str) -> None:
    bits = width_of(type_)
    pairs = list(itertools.product(WORDS[bits], AMOUNTS))
    found = evaluate(
        f"shr.{type_} %x, %a, %b;", (type_, [a for a, _ in pairs]), ("u32", [b for _, b in pairs]), result=type_
    )
    values = [(signed(bits, value) if type_[0] == "s" else value, min(amount, bits)) for value, amount in pairs]
    assert found == [value >> amount & (1 << bits) - 1 for value, amount in values]


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shift(mode: str) -> None:
    pairs = list(itertools.product((0x12345678, 0x80000001), (0xFEDCBA98, 1), AMOUNTS))
    sources = [("b32", [a for a, _, _ in pairs]), ("b32", [b for _, b, _ in pairs]), ("u32", [c for _, _, c in pairs])]
    left, right = evaluate_all(
        f"shf.l.{mode}.b32 %x, %a, %b, %c;\nshf.r.{mode}.b32 %y, %a, %b, %c;", sources, ["b32", "b32"]
    )
    for (low, high, amount), x, y in zip(pairs, left, right, strict=True):
        moved = amount & 31 if mode == "wrap" else min(amount, 32)
        both = high << 32 | low
        assert x == both << moved >> 32 & 0xFFFFFFFF
        assert y == both >> moved & 0xFFFFFFFF


@pytest.mark.parametrize("table", [0, 1, 0x80, 0x96, 0xE8, 0xFF, 0x3C, 0x1B])
def test_lookup_of_each_bit(table: int) -> None:
    a, b, c = 0xF0F0AA55, 0xCCCC1234, 0xAAAA8001
    (found,) = evaluate(f"lop3.b32 %x, %a, %b, %c, {table};", ("b32", [a]), ("b32", [b]), ("b32", [c]), result="b32")
    rows = [(a >> at & 1) << 2 | (b >> at & 1) << 1 | c >> at & 1 for at in range(32)]
    assert found == sum((table >> row & 1) << at for at, row in enumerate(rows))


FIELDS: Final = tuple(itertools.product((0, 1, 5, 31, 32, 63, 64, 255, 256 + 4), (0, 1, 8, 31, 32, 33, 64, 255)))


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_extraction_of_a_field(type_: str) -> None:
    """The pseudo code of 'bfe', but for a start that has more than eight bits in 64: an H200 does not cut it."""
    bits = width_of(type_)
    rows = list(itertools.product(WORDS[bits], FIELDS))
    sources = [(type_, [a for a, _ in rows]), ("u32", [p for _, (p, _) in rows]), ("u32", [n for _, (_, n) in rows])]
    found = evaluate(f"bfe.{type_} %x, %a, %b, %c;", *sources, result=type_)
    low_bytes = [(value, start & (255 if bits == 32 else -1), length & 255) for value, (start, length) in rows]
    for (value, start, length), result in zip(low_bytes, found, strict=True):
        is_zero = type_[0] == "u" or not length
        sign = 0 if is_zero else value >> min(start + length - 1, bits - 1) & 1
        expected = 0
        for at in range(bits):
            inside = at < length and start + at < bits
            expected |= (value >> start + at & 1 if inside else sign) << at
        assert result == expected, (hex(value), start, length)


@pytest.mark.parametrize("bits", [32, 64])
def test_insertion_of_a_field(bits: int) -> None:
    rows: list[tuple[int, int, tuple[int, int]]] = list(
        itertools.product((0x12345678, (1 << bits) - 1), (0, (1 << bits) - 1), FIELDS)
    )
    words: list[Source] = [(f"b{bits}", [row[0] for row in rows]), (f"b{bits}", [row[1] for row in rows])]
    places: list[Source] = [("u32", [row[2][n] for row in rows]) for n in range(2)]
    found = evaluate(f"bfi.b{bits} %x, %a, %b, %c, %d;", *words, *places, result=f"b{bits}")
    for (field, base, (start, length)), result in zip(rows, found, strict=True):
        expected = base
        first = start & 255 if bits == 32 else start
        for at in range(min(length & 255, bits)):
            if first + at < bits:
                expected = expected & ~(1 << first + at) | (field >> at & 1) << first + at
        assert result == expected


def test_mask_of_a_field() -> None:
    pairs = list(itertools.product((0, 4, 31, 32, 40), (0, 1, 8, 32, 33)))
    sources = [("u32", [a for a, _ in pairs]), ("u32", [b for _, b in pairs])]
    clamped, wrapped = evaluate_all("bmsk.clamp.b32 %x, %a, %b;\nbmsk.wrap.b32 %y, %a, %b;", sources, ["b32", "b32"])
    for (start, length), x, y in zip(pairs, clamped, wrapped, strict=True):
        assert x == (((1 << length) - 1) << start & 0xFFFFFFFF if start < 32 else 0)
        assert y == ((1 << (length & 31)) - 1) << (start & 31) & 0xFFFFFFFF


def test_extension_of_the_sign() -> None:
    pairs = list(itertools.product((0x12345678, 0xFFFFFFFF, 0x80), (0, 1, 8, 31, 32, 33)))
    sources = [("u32", [a for a, _ in pairs]), ("u32", [b for _, b in pairs])]
    for_signed, for_unsigned = evaluate_all(
        "szext.clamp.s32 %x, %a, %b;\nszext.wrap.u32 %y, %a, %b;", sources, ["u32", "u32"]
    )
    for (value, length), x, y in zip(pairs, for_signed, for_unsigned, strict=True):
        kept = min(length, 32)
        part = value & (1 << kept) - 1
        assert x == (signed(kept, part) & 0xFFFFFFFF if kept else 0)
        assert y == value & (1 << (length & 31)) - 1


def test_permutation_of_bytes() -> None:
    low, high = 0x83828180, 0x07060504
    selectors = (0x3210, 0x7654, 0x0123, 0xBA98, 0x8888, 0xFEDC, 0x0451)
    count = len(selectors)
    found = evaluate(
        "prmt.b32 %x, %a, %b, %c;", ("b32", [low] * count), ("b32", [high] * count), ("b32", selectors), result="b32"
    )
    octets = (high << 32 | low).to_bytes(8, "little")
    for selector, result in zip(selectors, found, strict=True):
        nibbles = [selector >> at & 15 for at in (0, 4, 8, 12)]
        chosen = [octets[nibble & 7] if nibble < 8 else 255 * (octets[nibble & 7] >> 7) for nibble in nibbles]
        assert result == int.from_bytes(bytes(chosen), "little")


@pytest.mark.parametrize(
    ("mode", "first", "third"),
    [
        ("f4e", 0x03020100, 0x05040302),
        ("b4e", 0x05060700, 0x07000102),
        ("rc8", 0, 0x02020202),
        ("ecl", 0x03020100, 0x03020202),
        ("ecr", 0, 0x02020100),
        ("rc16", 0x01000100, 0x01000100),
    ],
)
def test_modes_of_permutation(mode: str, first: int, third: int) -> None:
    sources = [("b32", [0x03020100] * 2), ("b32", [0x07060504] * 2), ("b32", [0, 2])]
    assert evaluate(f"prmt.b32.{mode} %x, %a, %b, %c;", *sources, result="b32") == [first, third]


def test_place_of_the_nth_bit() -> None:
    rows = [(0b10110, 0, 1), (0b10110, 0, 3), (0b10110, 0, 4), (0b10110, 2, 0), (0b10110, 3, 0), (0b10110, 4, -2)]
    sources = [("b32", [row[n] for row in rows]) for n in range(3)]
    found = evaluate("fns.b32 %x, %a, %b, %c;", *sources, result="b32")
    assert found == [1, 4, 0xFFFFFFFF, 2, 0xFFFFFFFF, 2]


def test_lookup_with_a_predicate() -> None:
    lines = "lop3.or.b32 %x|%p1, %a, %b, 0, 0xC0, %p0;\nselp.u32 %y, 1, 0, %p1;"
    sources = [("b32", [0b1100, 0b0011]), ("b32", [0b1010, 0b1100])]
    before = "setp.ne.u32 %p0, 0, 0;\n"
    assert evaluate_all(before + lines, sources, ["b32", "u32"]) == [[0b1000, 0], [1, 0]]
