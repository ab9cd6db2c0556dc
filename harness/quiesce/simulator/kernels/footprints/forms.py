"""Linear forms: numbers as sums of what differs between threads, times what is the same for the whole launch.

A *size* is the same for the whole launch: a parameter, a dimension, or what is computed of these. An *atom* differs
between threads: an index of the thread or of the block, or how often a loop has gone round. The runtime computes sizes
when a kernel is launched, and compares numbers only.

A register with 32 bits is what remains of its form modulo 2**32. A *duty* says in which range a form has to lie, so
that nothing was cut off.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

TERMS_MAX: Final = 8
_BITS: Final = 64


class SizeKind(IntEnum):
    """How a size is computed; ``native/kernels/footprints.h`` has the same numbers."""

    CONSTANT = 0
    PARAMETER = 1
    BLOCK = 2
    GRID = 3
    VARIABLE = 4
    ADD = 5
    SUBTRACT = 6
    MULTIPLY = 7
    DIVIDE = 8
    REMAINDER = 9
    SHIFT_RIGHT = 10
    AND = 11
    OR = 12
    XOR = 13
    LEAST = 14
    MOST = 15
    SIGNED_32 = 16
    UNSIGNED_32 = 17


class AtomKind(IntEnum):
    """What differs between threads; ``native/kernels/footprints.h`` has the same numbers."""

    ANYTHING = 0
    THREAD = 1
    BLOCK = 2
    ROUND = 3
    QUOTIENT = 4
    BELOW = 5
    CARRIED = 6
    """What a register has where a loop begins; it is never written to the object."""


class Range(IntEnum):
    """In which range a form has to lie; ``native/kernels/footprints.h`` has the same numbers."""

    SIGNED_32 = 0
    UNSIGNED_32 = 1
    SIGNED_64 = 2
    UNSIGNED_64 = 3


Size = tuple[SizeKind, int, int]
Atom = tuple[AtomKind, int, int]
ANYTHING: Final[Atom] = (AtomKind.ANYTHING, 0, 0)
PRIVATE: Final = -1
"""In place of a pointer: memory of the thread or of its block."""
UNKNOWN: Final = -2
"""In place of a pointer: any other one may have been added too."""


def wrap(value: int) -> int:
    """Return a number as 64 bits have it, with a sign."""
    value &= (1 << _BITS) - 1
    return value - (1 << _BITS) if value >> (_BITS - 1) else value


@dataclass(slots=True)
class Sizes:
    """All sizes of a kernel, each once and after those that it is computed of."""

    all: list[Size] = field(default_factory=list)
    _numbers: dict[Size, int] = field(default_factory=dict)

    def add(self, kind: SizeKind, first: int = 0, second: int = 0) -> int:
        """Return the number of a size."""
        size = (kind, first, second)
        if size not in self._numbers:
            self._numbers[size] = len(self.all)
            self.all.append(size)
        return self._numbers[size]

    def constant(self, value: int) -> int:
        """Return the size that is a literal."""
        return self.add(SizeKind.CONSTANT, wrap(value))

    def value(self, number: int) -> int | None:
        """Return a size that is a literal as one; None for any other."""
        kind, value, _ = self.all[number]
        return value if kind == SizeKind.CONSTANT else None

    def sum(self, first: int, second: int) -> int:
        """Return a sum. Literals stand last."""
        a, b = self.value(first), self.value(second)
        if a is not None and b is not None:
            return self.constant(a + b)
        if a is not None:
            first, second, a, b = second, first, b, a
        if b == 0:
            return first
        kind, left, right = self.all[first]
        literal = self.value(right) if kind == SizeKind.ADD else None
        if b is not None and literal is not None:
            return self.sum(left, self.constant(literal + b))
        return self.add(SizeKind.ADD, first, second)

    def product(self, first: int, second: int) -> int:
        """Return a product."""
        a, b = self.value(first), self.value(second)
        if a is not None and b is not None:
            return self.constant(a * b)
        if 0 in (a, b):
            return self.constant(0)
        if a == 1:
            return second
        return first if b == 1 else self.add(SizeKind.MULTIPLY, first, second)

    def negative(self, number: int) -> int:
        """Return a size with the other sign."""
        return self.product(number, self.constant(-1))


@dataclass(frozen=True, slots=True)
class Form:
    """A number: a size and the terms of atoms with their factors, which are sizes."""

    constant: int
    terms: tuple[tuple[Atom, int], ...] = ()
    bases: frozenset[int] = frozenset()
    """The sizes that were added to it and may be a pointer, or ``PRIVATE``."""
    duties: frozenset[tuple[Form, Range]] = frozenset()

    @property
    def is_size(self) -> bool:
        """Say whether it is the same for the whole launch."""
        return not self.terms

    @property
    def is_known(self) -> bool:
        """Say whether something is known of it."""
        return all(atom != ANYTHING for atom, _ in self.terms)

    @property
    def core(self) -> Form:
        """Return the form alone."""
        return Form(self.constant, self.terms)


class Forms:
    """Arithmetic with forms, which share sizes."""

    def __init__(self) -> None:
        self.sizes = Sizes()
        self.divided: list[Form] = []
        """The forms that atoms are quotients of."""
        self._below = 0
        self._one, self._zero = self.sizes.constant(1), self.sizes.constant(0)

    def size(self, number: int, *, may_be_pointer: bool = False) -> Form:
        """Return a form that is one size."""
        return Form(number, (), frozenset({number}) if may_be_pointer else frozenset())

    def literal(self, value: int) -> Form:
        """Return a form that is a literal."""
        return Form(self.sizes.constant(value))

    def atom(self, atom: Atom, duties: frozenset[tuple[Form, Range]] = frozenset()) -> Form:
        """Return a form that is one atom."""
        return Form(self._zero, ((atom, self._one),), frozenset(), duties)

    def quotient(self, form: Form, by: int) -> Form:
        """Return a form divided by a size."""
        if not all(kind in (AtomKind.THREAD, AtomKind.BLOCK) for (kind, _, _), _ in form.terms):
            return self.anything()
        if form.core not in self.divided:
            self.divided.append(form.core)
        return self.atom((AtomKind.QUOTIENT, self.divided.index(form.core), by), form.duties)

    def below(self, end: int, duties: frozenset[tuple[Form, Range]] = frozenset()) -> Form:
        """Return a number from 0 on that is less than a size. No two are the same."""
        self._below += 1
        return self.atom((AtomKind.BELOW, end, self._below), duties)

    def anything(self, *of: Form) -> Form:
        """Return a form of which nothing is known, but which pointers were added to it."""
        return replace(self.atom(ANYTHING), bases=frozenset(base for each in of for base in each.bases))

    def add(self, first: Form, second: Form, sign: int = 1) -> Form:
        """Return a sum or a difference."""
        bases = first.bases | second.bases
        if not (first.is_known and second.is_known):
            return replace(self.atom(ANYTHING), bases=bases)
        if sign < 0:
            second = replace(self.scale(second, self.sizes.constant(-1)), bases=second.bases)
        factors = dict(first.terms)
        for atom, factor in second.terms:
            factors[atom] = self.sizes.sum(factors[atom], factor) if atom in factors else factor
        terms = tuple((atom, factor) for atom, factor in factors.items() if self.sizes.value(factor) != 0)
        if len(terms) > TERMS_MAX:
            return replace(self.atom(ANYTHING), bases=bases)
        constant = self.sizes.sum(first.constant, second.constant)
        return Form(constant, tuple(sorted(terms)), bases, first.duties | second.duties)

    def scale(self, form: Form, factor: int) -> Form:
        """Return the product of a form with a size. It is no pointer, unless the factor is 1."""
        if self.sizes.value(factor) == 1:
            return form
        terms = ((atom, self.sizes.product(each, factor)) for atom, each in form.terms)
        kept = tuple((atom, each) for atom, each in terms if self.sizes.value(each) != 0)
        return Form(self.sizes.product(form.constant, factor), kept, frozenset(), form.duties)

    def multiply(self, first: Form, second: Form) -> Form:
        """Return a product; it is known where one of the two is a size."""
        if first.is_size:
            return replace(self.scale(second, first.constant), duties=first.duties | second.duties)
        if second.is_size:
            return replace(self.scale(first, second.constant), duties=first.duties | second.duties)
        return self.anything()

    def exact(self, form: Form, range_: Range) -> Form:
        """Return a form as the number that its register has, read with or without a sign."""
        if form.is_size and range_ in (Range.SIGNED_32, Range.UNSIGNED_32):
            kind = SizeKind.SIGNED_32 if range_ == Range.SIGNED_32 else SizeKind.UNSIGNED_32
            value = self.sizes.value(form.constant)
            if value is None:
                return Form(self.sizes.add(kind, form.constant), (), frozenset(), form.duties)
            rest = value & 0xFFFFFFFF
            is_negative = range_ == Range.SIGNED_32 and rest >> 31
            return Form(self.sizes.constant(rest - (1 << 32) if is_negative else rest))
        if form.is_size or not form.is_known:
            return form
        return replace(form, duties=form.duties | {(form.core, range_)})

    def substitute(self, form: Form, known: dict[Atom, Form]) -> Form:
        """Return a form in which some atoms are replaced, also in its duties."""
        result = Form(form.constant, (), form.bases, self.substitute_all(form.duties, known))
        for atom, factor in form.terms:
            value = known.get(atom)
            each = Form(self._zero, ((atom, factor),)) if value is None else self.scale(value, factor)
            result = self.add(result, each)
        return result

    def substitute_all(
        self, duties: frozenset[tuple[Form, Range]], known: dict[Atom, Form]
    ) -> frozenset[tuple[Form, Range]]:
        """Return duties in which some atoms are replaced, with those of what replaces them."""
        found: set[tuple[Form, Range]] = set()
        for each, range_ in duties:
            form = self.substitute(each, known)
            found |= {(form.core, range_), *form.duties}
        return frozenset(found)
