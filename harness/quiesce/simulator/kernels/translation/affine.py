"""Numbers that grow evenly with the index of a thread: a start and a step for each axis of the block.

Steps are 64-bit numbers of LLVM, or of Python where they are known. A number with fewer bits is what remains of its
start and steps modulo two to the power of its bits; :func:`exact` says under which condition nothing was cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quiesce.simulator.kernels.translation.llvm_code import Code

Step = int | str
Steps = tuple[Step, Step, Step]
Box = tuple[tuple[Step, Step], tuple[Step, Step], tuple[Step, Step]]
"""Threads of a block: on each axis from one index on, and up to another."""
NONE: Final[Steps] = (0, 0, 0)
_WIDE_STEP_BITS: Final = 41
_WIDE_START_BITS: Final = 63


@dataclass(frozen=True, slots=True)
class Affine:
    """A whole number; ``start`` is that of the thread whose index is 0 on every axis."""

    bits: int
    start: str
    steps: Steps = NONE
    conditions: frozenset[str] = frozenset()
    """What has to hold, or the number is another one."""

    @property
    def is_uniform(self) -> bool:
        """Say whether it is the same for all threads."""
        return self.steps == NONE


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition: the threads for which it holds and those for which it does not; None where they are in no box."""

    inside: Box | None
    outside: Box | None
    conditions: frozenset[str] = frozenset()
    value: str | None = None
    """Its value where it is the same for all threads."""


def step_of(text: str) -> Step:
    """Return a number of LLVM's text as one of Python where that is one."""
    return int(text) if text.removeprefix("-").isdigit() else text


def add(code: Code, first: Step, second: Step, sign: int = 1) -> Step:
    """Return a sum or a difference."""
    if second == 0:
        return first
    if isinstance(first, int) and isinstance(second, int):
        return first + sign * second
    if first == 0 and sign > 0:
        return second
    return code.define(f"{'add' if sign > 0 else 'sub'} i64 {first}, {second}")


def multiply(code: Code, first: Step, second: Step) -> Step:
    """Return a product."""
    if first == 0 or second == 0:
        return 0
    if isinstance(first, int) and isinstance(second, int):
        return first * second
    if 1 in (first, second):
        return second if first == 1 else first
    return code.define(f"mul i64 {first}, {second}")


def add_all(code: Code, first: Steps, second: Steps, sign: int = 1) -> Steps:
    """Return the sum or the difference of steps."""
    x, y, z = (add(code, a, b, sign) for a, b in zip(first, second, strict=True))
    return x, y, z


def multiply_all(code: Code, steps: Steps, factor: Step) -> Steps:
    """Return the products of steps with a number that is the same for all threads."""
    x, y, z = (multiply(code, each, factor) for each in steps)
    return x, y, z


def choose(code: Code, comparison: str, first: Step, second: Step) -> Step:
    """Return the first number where the comparison holds, and else the second."""
    if first == second:
        return first
    if isinstance(first, int) and isinstance(second, int):
        is_first = first < second if comparison == "slt" else first > second
        return first if is_first else second
    return code.select(code.define(f"icmp {comparison} i64 {first}, {second}"), "i64", str(first), str(second))


def intersect(code: Code, first: Box, second: Box) -> Box:
    """Return the threads that are in both."""
    x, y, z = (
        (choose(code, "sgt", a[0], b[0]), choose(code, "slt", a[1], b[1])) for a, b in zip(first, second, strict=True)
    )
    return x, y, z


def normal(code: Code, step: Step, bits: int) -> Step:
    """Return the number from the middle of the range around 0 that is the same modulo two to the power of the bits."""
    if isinstance(step, int):
        rest = step & (1 << bits) - 1
        return rest - (1 << bits) if rest >> (bits - 1) else rest
    if bits == 64:
        return step
    return code.cast(code.cast(step, 64, bits), bits, 64, signed=True)


def limits(code: Code, start: Step, steps: Steps, box: Box) -> tuple[Step, Step]:
    """Return the least and the greatest number of the threads in a box."""
    least = most = start
    for step, (first, end) in zip(steps, box, strict=True):
        if step == 0:
            continue
        last = choose(code, "sgt", add(code, end, 1, -1), first)  # of no threads, a number that one could have
        ends = [multiply(code, step, first), multiply(code, step, last)]
        if isinstance(step, int):
            low, high = ends if step > 0 else reversed(ends)
        else:
            low, high = choose(code, "slt", *ends), choose(code, "sgt", *ends)
        least, most = add(code, least, low), add(code, most, high)
    return least, most


def exact(code: Code, number: Affine, is_signed: bool, box: Box) -> Affine:
    """Return a number with 64 bits that is the same for the threads in a box, as a signed or an unsigned one."""
    bits = number.bits
    if bits == 64:
        return _exact_wide(code, number, is_signed, box)
    start = _widened(code, number, is_signed)
    x, y, z = (normal(code, step, bits) for step in number.steps)
    steps: Steps = (x, y, z)
    if steps == NONE:
        return Affine(64, start, NONE, number.conditions)
    held = [_fits(code, each, bits, is_signed) for each in limits(code, start, steps, box)]
    return Affine(64, start, steps, number.conditions.union(held))


def _widened(code: Code, number: Affine, is_signed: bool) -> str:
    start = step_of(number.start)
    if isinstance(start, str):
        return code.cast(start, number.bits, 64, is_signed)
    return str(normal(code, start, number.bits) if is_signed else start & (1 << number.bits) - 1)


def _exact_wide(code: Code, number: Affine, is_signed: bool, box: Box) -> Affine:
    """Ask for numbers that are so small that sums over a block fit into 64 bits."""
    held = [_fits(code, number.start, _WIDE_START_BITS, True)]
    if not is_signed:
        held.append(code.define(f"icmp sge i64 {limits(code, number.start, number.steps, box)[0]}, 0"))
    for step in number.steps:
        if isinstance(step, str):
            held.append(_fits(code, step, _WIDE_STEP_BITS, True))
        elif abs(step) >> (_WIDE_STEP_BITS - 1):
            held.append("false")
    return Affine(64, number.start, number.steps, number.conditions.union(held))


def _fits(code: Code, number: Step, bits: int, is_signed: bool) -> str:
    if isinstance(number, int):
        return str(number == (normal(code, number, bits) if is_signed else number & (1 << bits) - 1)).lower()
    if not is_signed:
        return code.define(f"icmp eq i64 {code.define(f'lshr i64 {number}, {bits}')}, 0")
    shifted = code.define(f"shl i64 {number}, {64 - bits}")
    return code.define(f"icmp eq i64 {code.define(f'ashr i64 {shifted}, {64 - bits}')}, {number}")


def shifted_right(code: Code, number: Affine, by: int, start: str, box: Box) -> Affine:
    """Return a number of 64 bits without its last bits, as a signed one; no step may have such bits."""
    held = []
    shifted: list[Step] = []
    for step in (normal(code, each, 64) for each in number.steps):
        if isinstance(step, str):
            rest = code.define(f"and i64 {step}, {(1 << by) - 1}")
            held.append(code.define(f"icmp eq i64 {rest}, 0"))
            shifted.append(code.define(f"ashr i64 {step}, {by}"))
        else:
            held += ["false"] if step & (1 << by) - 1 else []
            shifted.append(step >> by)
    x, y, z = shifted
    held += [_fits(code, each, 64 - by, True) for each in limits(code, start, (x, y, z), box)]
    return Affine(64, start, (x, y, z), number.conditions.union(held))


def uniform_predicate(code: Code, value: str, box: Box, conditions: frozenset[str] = frozenset()) -> Predicate:
    """Return a condition that is the same for all threads in a box."""
    (first, end), *others = box
    held = code.select(value, "i64", str(end), str(first))
    failed = code.select(value, "i64", str(first), str(end))
    return Predicate(((first, held), *others), ((first, failed), *others), conditions, value)  # type: ignore[arg-type]


def is_negative(code: Code, number: Affine, box: Box) -> Predicate:
    """Say for which threads an exact number is below 0."""
    axes = [axis for axis, step in enumerate(number.steps) if step != 0]
    if not axes:
        value = code.define(f"icmp slt i64 {number.start}, 0")
        return uniform_predicate(code, value, box, number.conditions)
    step = number.steps[axes[0]]
    if len(axes) > 1 or isinstance(step, str):
        least, most = limits(code, number.start, number.steps, box)
        value = code.define(f"icmp slt i64 {most}, 0")
        none = code.define(f"icmp sge i64 {least}, 0")
        agreed = code.define(f"or i1 {value}, {none}")
        return uniform_predicate(code, value, box, number.conditions | {agreed})
    return _split(code, number, box, axes[0], step)


def _split(code: Code, number: Affine, box: Box, axis: int, step: int) -> Predicate:
    """Split a box on one axis, where a number that grows or falls there meets 0."""
    first, end = box[axis]
    size = abs(step)
    if step > 0:  # as many as are needed to come from the start to 0 are below it
        distance = choose(code, "sgt", add(code, 0, number.start, -1), 0)
        border: Step = code.define(f"udiv i64 {add(code, distance, size - 1)}, {size}")
    else:
        above = code.define(f"sdiv i64 {number.start}, {size}")
        begun = code.define(f"icmp sge i64 {number.start}, 0")
        border = code.select(begun, "i64", str(add(code, above, 1)), "0")
    border = choose(code, "slt", choose(code, "sgt", border, first), end)
    halves = ((first, border), (border, end))
    inside, outside = halves if step > 0 else reversed(halves)
    return Predicate(_with(box, axis, inside), _with(box, axis, outside), number.conditions)


def is_zero(code: Code, number: Affine, box: Box) -> Predicate | None:
    """Say for which threads an exact number is 0."""
    axes = [axis for axis, step in enumerate(number.steps) if step != 0]
    if not axes:
        value = code.define(f"icmp eq i64 {number.start}, 0")
        return uniform_predicate(code, value, box, number.conditions)
    step = number.steps[axes[0]]
    if len(axes) > 1 or step not in (1, -1):
        return None
    at = add(code, 0, number.start, -1) if step == 1 else number.start
    one = _with(box, axes[0], (at, add(code, at, 1)))
    return Predicate(intersect(code, box, one), None, number.conditions)


def _with(box: Box, axis: int, side: tuple[Step, Step]) -> Box:
    x, y, z = (side if number == axis else each for number, each in enumerate(box))
    return x, y, z
