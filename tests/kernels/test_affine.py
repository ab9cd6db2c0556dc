"""Numbers that grow evenly: what is said of all threads of a box holds for each, whenever its parts become known.

A part is known when a kernel is compiled, or only when it is launched. Both ways have to give the same.
"""

from __future__ import annotations

import ctypes
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

llvm = pytest.importorskip("llvmlite.binding", reason="kernels are compiled by llvmlite")

from tests.kernels.programs import kernel_around  # noqa: E402 - it needs llvmlite

from quiesce.simulator.kernels.ptx.module import Module  # noqa: E402
from quiesce.simulator.kernels.translation import affine  # noqa: E402
from quiesce.simulator.kernels.translation.affine import Affine, Box, Predicate, Step, Steps  # noqa: E402
from quiesce.simulator.kernels.translation.llvm_code import Code  # noqa: E402
from quiesce.simulator.kernels.translation.program import Program  # noqa: E402

EXAMPLES: Final = 120
MODULE: Final = Module(kernel_around("", [], []))
Ranges = tuple[tuple[int, int], ...]


@pytest.fixture(autouse=True)
def tuned() -> bool:
    """Nothing here depends on how often a kernel is launched."""
    return False


class Example:
    """The code of one example, the numbers in it, and the names of what it is asked for."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.code = Code(Program(MODULE))
        self.asked: list[str] = []

    def part(self, value: int) -> Step:
        """Return a number that is known now, or when the code runs."""
        return value if self.draw.random() < 0.5 else self.code.define(f"add i64 {value}, 0")

    def box(self, ranges: Ranges) -> Box:
        """Return a box of these ranges."""
        x, y, z = ((self.part(first), self.part(end)) for first, end in ranges)
        return x, y, z

    def steps(self, steps: Sequence[int]) -> Steps:
        x, y, z = map(self.part, steps)
        return x, y, z

    def ranges(self, least: int = 1) -> Ranges:
        """Return a range of threads on each axis; ``least`` is how many each has at least."""
        firsts = [self.draw.randint(0, 3) for _ in range(3)]
        return tuple((first, first + self.draw.randint(least, 4)) for first in firsts)

    def ask(self, *values: Step) -> None:
        """Ask for the values of numbers."""
        self.asked += map(str, values)

    def ask_for_box(self, box: Box) -> None:
        for side in box:
            self.ask(*side)

    def ask_whether(self, conditions: frozenset[str]) -> None:
        """Ask whether all conditions hold."""
        held = "true"
        for condition in sorted(conditions):
            held = self.code.define(f"and i1 {held}, {condition}")
        self.ask(self.code.cast(held, 1, 64))


def answers(examples: Sequence[Example]) -> Iterator[list[int]]:
    """Run the code of all examples and yield what each was asked for."""
    functions = []
    for number, example in enumerate(examples):
        for place, name in enumerate(example.asked):
            example.code.emit(f"store i64 {name}, ptr {example.code.byte_offset('%out', 8 * place)}")
        lines = "\n".join(example.code.lines)
        functions.append(f"define void @f{number}(ptr %out) {{\n{lines}\nret void\n}}\n")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("\n".join(functions)), machine)
    engine.finalize_object()
    for number, example in enumerate(examples):
        out = (ctypes.c_int64 * len(example.asked))()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address(f"f{number}"))(out)
        yield list(out)


def threads(ranges: Any) -> set[tuple[int, ...]]:
    """Return the threads of a box."""
    return set(itertools.product(*(range(first, end) for first, end in ranges)))


def sides(numbers: list[int]) -> list[tuple[int, int]]:
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def value(start: int, steps: Sequence[int], thread: Sequence[int]) -> int:
    return start + sum(step * index for step, index in zip(steps, thread, strict=True))


def as_number(bits: int, word: int, is_signed: bool) -> int:
    """Return the number that the last bits of a word stand for."""
    word &= (1 << bits) - 1
    return word - (1 << bits) if is_signed and word >> (bits - 1) else word


# -- sums, products, boxes ---------------------------------------------------------------------------------------------


def difference(code: Code, first: Step, second: Step) -> Step:
    return affine.add(code, first, second, -1)


def test_sums_and_products() -> None:
    examples, expected = [], []
    for seed in range(EXAMPLES):
        example = Example(seed)
        first, second = (example.draw.choice((0, 1, -1, 2, 7, -5)) for _ in range(2))
        for function, result in (
            (affine.add, first + second),
            (difference, first - second),
            (affine.multiply, first * second),
        ):
            example.ask(function(example.code, example.part(first), example.part(second)))
            expected.append(result)
        examples.append(example)
    assert [number for found in answers(examples) for number in found] == expected


def test_what_is_known_needs_no_code() -> None:
    code = Code(Program(MODULE))
    assert affine.add(code, 3, 4) == 7
    assert affine.add(code, 3, 4, -1) == -1
    assert affine.add(code, "%x", 0) == affine.add(code, 0, "%x") == "%x"
    assert affine.multiply(code, 3, 4) == 12
    assert affine.multiply(code, "%x", 0) == affine.multiply(code, 0, "%x") == 0
    assert affine.multiply(code, "%x", 1) == affine.multiply(code, 1, "%x") == "%x"
    assert affine.choose(code, "slt", "%x", "%x") == "%x"
    assert affine.choose(code, "slt", 3, 4) == affine.choose(code, "sgt", 3, 2) == 3
    assert affine.choose(code, "slt", 4, 3) == affine.choose(code, "sgt", 2, 3) == 3
    assert affine.normal(code, "%x", 64) == "%x"
    assert affine.limits(code, 5, (0, 0, 0), ((0, "%x"), (0, 1), (0, 1))) == (5, 5)
    assert [affine.step_of(text) for text in ("12", "-12", "%12", "-")] == [12, -12, "%12", "-"]
    assert code.lines == []


def test_the_threads_in_both_of_two_boxes() -> None:
    examples, expected = [], []
    for seed in range(EXAMPLES):
        example = Example(seed)
        first, second = example.ranges(0), example.ranges(0)
        example.ask_for_box(affine.intersect(example.code, example.box(first), example.box(second)))
        examples.append(example)
        expected.append(threads(first) & threads(second))
    assert [threads(sides(found)) for found in answers(examples)] == expected


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_the_number_nearest_to_0_that_is_the_same(bits: int) -> None:
    words = [0, 1, -1, 5, (1 << bits - 1) - 1, -(1 << bits - 1), 3 - (1 << bits - 1)]
    if bits < 64:
        words += [1 << bits - 1, (1 << bits) - 1, (1 << bits) + 7, -(1 << bits) - 7]
    examples = [Example(seed) for seed in range(4)]
    for example in examples:
        example.ask(*(affine.normal(example.code, example.part(word), bits) for word in words))
    for found in answers(examples):
        assert found == [as_number(bits, word, True) for word in words]


@pytest.mark.parametrize("least", [0, 1])
def test_the_least_and_the_greatest_number_of_a_box(least: int) -> None:
    """Those of no threads are numbers that a thread could have."""
    examples, expected = [], []
    for seed in range(EXAMPLES):
        example = Example(seed)
        ranges, start = example.ranges(least), example.draw.randint(-20, 20)
        steps = [example.draw.choice((0, 1, -1, 3, -7)) for _ in range(3)]
        found = affine.limits(example.code, example.part(start), example.steps(steps), example.box(ranges))
        example.ask(*found)
        examples.append(example)
        values = [value(start, steps, each) for each in threads((a, max(b, a + 1)) for a, b in ranges)]
        expected.append([min(values), max(values)])
    assert list(answers(examples)) == expected


# -- numbers of which something may be cut off -------------------------------------------------------------------------


@pytest.mark.parametrize("is_signed", [True, False])
def test_a_number_of_32_bits_with_all_of_its_bits(is_signed: bool) -> None:
    edges = (0, 1, 7, 0x7FFFFFF0, 0x7FFFFFFF, 0x80000000, 0x80000005, 0xFFFFFFF8, 0xFFFFFFFF, -1, -9)
    least, most = (-(1 << 31), (1 << 31) - 1) if is_signed else (0, (1 << 32) - 1)
    examples, said = [], []
    for seed in range(2 * EXAMPLES):
        example = Example(seed)
        ranges, start = example.ranges(), example.draw.choice(edges)
        steps = [example.draw.choice((0, 0, 1, 2, 0xFFFFFFFF, 0xFFFFFFFD)) for _ in range(3)]
        text = str(start) if seed % 2 else example.code.cast(example.code.define(f"add i64 {start}, 0"), 64, 32)
        number = Affine(32, text, example.steps(steps))
        whole = affine.exact(example.code, number, is_signed, example.box(ranges))
        example.ask(whole.start, *whole.steps)
        example.ask_whether(whole.conditions)
        assert whole.bits == 64
        examples.append(example)
        said.append((ranges, start, steps))
    held_at_all = 0
    for (ranges, start, steps), (first, x, y, z, held) in zip(said, answers(examples), strict=True):
        small = [as_number(32, step, True) for step in steps]
        assert (first, [x, y, z]) == (as_number(32, start, is_signed), small)
        values = [value(first, small, each) for each in threads(ranges)]
        assert bool(held) == all(least <= each <= most for each in values)
        held_at_all += held
    assert EXAMPLES / 2 < held_at_all < 2 * EXAMPLES


@pytest.mark.parametrize("is_signed", [True, False])
@pytest.mark.parametrize(
    ("start", "step", "fits"),
    [
        (0, 1, True),
        ((1 << 62) - 1, (1 << 40) - 1, True),
        (1 << 62, 1, False),
        (-(1 << 62), 0, True),
        (-(1 << 62) - 1, 0, False),
        (0, 1 << 40, False),
        (1 << 61, -(1 << 39), True),
        (5, -1, True),
        (1, -1, True),
    ],
)
def test_a_number_of_64_bits_is_exact_where_it_is_small(start: int, step: int, fits: bool, is_signed: bool) -> None:
    ranges = ((0, 4), (0, 1), (0, 1))
    examples = [Example(seed) for seed in range(16)]
    for example in examples:
        start_text = example.code.define(f"add i64 {start}, 0")
        number = Affine(64, start_text, (example.part(step), 0, 0))
        whole = affine.exact(example.code, number, is_signed, example.box(ranges))
        example.ask(whole.start, whole.steps[0])
        example.ask_whether(whole.conditions)
    is_positive = min(value(start, (step, 0, 0), each) for each in threads(ranges)) >= 0
    for found in answers(examples):
        assert found == [start, step, int(fits and (is_signed or is_positive))]


@pytest.mark.parametrize("by", [1, 3, 32])
def test_a_number_without_its_last_bits(by: int) -> None:
    examples, said = [], []
    for seed in range(EXAMPLES):
        example = Example(seed)
        ranges, start = example.ranges(), example.draw.choice((0, 5, -9, 1 << 34, -(1 << 33)))
        steps = [example.draw.choice((0, 1 << by, -(2 << by), 5 << by, *[1] * (seed % 8 == 0))) for _ in range(3)]
        text = example.code.define(f"add i64 {start}, 0")
        shifted = example.code.define(f"ashr i64 {text}, {by}")
        number = Affine(64, text, example.steps(steps))
        found = affine.shifted_right(example.code, number, by, shifted, example.box(ranges))
        example.ask(found.start, *found.steps)
        example.ask_whether(found.conditions)
        examples.append(example)
        said.append((ranges, start, steps))
    for (ranges, start, steps), (first, x, y, z, held) in zip(said, answers(examples), strict=True):
        assert bool(held) == all(step % (1 << by) == 0 for step in steps)
        for each in threads(ranges) if held else ():
            assert value(first, (x, y, z), each) == value(start, steps, each) >> by


# -- conditions --------------------------------------------------------------------------------------------------------


def compare(predicates: str) -> tuple[int, int]:
    """Check for which threads a condition holds and for which not; return how often that is told, and of how many."""
    examples, said = [], []
    for seed in range(3 * EXAMPLES):
        example = Example(seed)
        ranges, start = example.ranges(), example.draw.randint(-9, 9)
        steps = [0, 0, 0]
        for axis in example.draw.choice(((0,), (1,), (2,), (), (0, 1), (0, 1, 2))):
            steps[axis] = example.draw.choice((1, -1, 2, -3))
        text = str(start) if seed % 2 else example.code.define(f"add i64 {start}, 0")
        box = example.box(ranges)
        x, y, z = (example.part(step) if step else 0 for step in steps)
        known: Steps = (x, y, z)
        found = getattr(affine, predicates)(example.code, Affine(64, text, known), box)
        if found is None:
            continue
        assert isinstance(found, Predicate)
        for side in (found.inside, found.outside):
            if side is not None:
                example.ask_for_box(side)
        example.ask_whether(found.conditions)
        examples.append(example)
        said.append((ranges, start, steps, [found.inside is not None, found.outside is not None]))
    held_at_all = 0
    for (ranges, start, steps, told), found in zip(said, answers(examples), strict=True):
        *numbers, held = found
        held_at_all += held
        if not held:
            continue
        boxes = iter(threads(sides(numbers[start : start + 6])) for start in range(0, len(numbers), 6))
        values = {each: value(start, steps, each) for each in threads(ranges)}
        holds = {each for each, at in values.items() if (at < 0 if predicates == "is_negative" else at == 0)}
        for is_told, wanted in zip(told, (holds, values.keys() - holds), strict=True):
            assert not is_told or next(boxes) == wanted
    return held_at_all, len(examples)


def test_for_which_threads_a_number_is_below_0() -> None:
    held, asked = compare("is_negative")
    assert asked == 3 * EXAMPLES
    assert asked / 2 < held < asked, "several axes, or an unknown step: then all threads have to agree"


def test_for_which_threads_a_number_is_0() -> None:
    held, asked = compare("is_zero")
    assert EXAMPLES / 2 < held == asked < 3 * EXAMPLES


def test_a_condition_that_is_the_same_for_all_threads() -> None:
    ranges = ((1, 4), (0, 2), (2, 3))
    for holds in (True, False):
        example = Example(0)
        found = affine.uniform_predicate(example.code, str(holds).lower(), example.box(ranges), frozenset({"%a"}))
        assert (set(found.conditions), found.value) == ({"%a"}, str(holds).lower())
        assert found.inside is not None
        assert found.outside is not None
        example.ask_for_box(found.inside)
        example.ask_for_box(found.outside)
        (numbers,) = answers([example])
        inside, outside = threads(sides(numbers[:6])), threads(sides(numbers[6:]))
        assert (inside, outside) == ((threads(ranges), set()) if holds else (set(), threads(ranges)))
