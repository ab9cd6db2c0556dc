"""The table of a kernel's footprints, as words with 64 bits that ``native/kernels/footprints.h`` reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from quiesce.simulator.kernels.footprints.evaluation import Condition, Names
from quiesce.simulator.kernels.footprints.forms import (
    ANYTHING,
    PRIVATE,
    TERMS_MAX,
    UNKNOWN,
    Atom,
    AtomKind,
    Form,
    Range,
    SizeKind,
)
from quiesce.simulator.kernels.footprints.reasons import Reason, reason_of
from quiesce.simulator.kernels.footprints.resolution import Repeated, Resolved, resolve
from quiesce.simulator.kernels.footprints.walk import Access, TooLong, walk
from quiesce.simulator.kernels.ptx.function import Function, Variable
from quiesce.simulator.kernels.translation.program import Program

ACCESSES_MAX: Final = 64
BASES_MAX: Final = 4
_SET_MAX: Final = 63
"""So many duties and conditions there may be: a set of them is the bits of a word."""
_NOBODY: Final = -1


def footprints(program: Program, function: Function) -> list[int]:
    """Return the table of a kernel: how many words it has, a :class:`Reason`, and more only where there is none."""
    words = _words(program, function)
    return [len(words) + 1, *words]


def _words(program: Program, function: Function) -> list[int]:
    reason = reason_of(program, function)
    if reason:
        return [reason]

    def variable_of(name: str) -> Variable | None:
        return function.variables.get(name) or program.module.variables.get(name)

    def number_of(variable: Variable) -> int:
        program.variable_slot(variable)
        return program.variables.index(variable.name)

    parameters = {each.name: each for each in function.parameters}
    try:
        resolved = resolve(walk(function, Names(parameters, variable_of, number_of)))
    except TooLong:
        return [Reason.NOT_UNDERSTOOD]
    if len(resolved.accesses) > ACCESSES_MAX:
        return [Reason.NOT_UNDERSTOOD]
    if any(not _bases(each) for each in resolved.accesses):
        return [Reason.PLACE_UNKNOWN]
    return _Table(resolved).words()


def _bases(access: Access) -> list[int]:
    """Return what may be the pointer that an address was made of; nothing where that is not known."""
    bases = access.place.bases
    if len(bases) > BASES_MAX or not bases.isdisjoint({PRIVATE, UNKNOWN}):
        return []
    return sorted(bases)


class _Full(Exception):
    """There are more duties or conditions than a table has room for."""


@dataclass(slots=True)
class _Table:
    resolved: Resolved
    _sizes: dict[int, int] = field(default_factory=dict)
    _atoms: dict[Atom, int] = field(default_factory=dict)
    _forms: dict[Form, int] = field(default_factory=dict)
    _duties: dict[tuple[Form, Range], int] = field(default_factory=dict)
    _conditions: dict[Condition | Repeated, int] = field(default_factory=dict)
    _bounds: dict[Atom, int] = field(default_factory=dict)
    _size_words: list[int] = field(default_factory=list)
    _form_words: list[list[int]] = field(default_factory=list)
    _condition_words: list[list[int]] = field(default_factory=list)

    def words(self) -> list[int]:
        """Return the whole table."""
        try:
            accesses = [word for each in self.resolved.accesses for word in self._access(each)]
            atoms = self._all_atoms()
        except _Full:
            return [Reason.NOT_UNDERSTOOD]
        duties = [word for form, range_ in self._duties for word in (self._forms[form], range_)]
        parts = (
            self._size_words,
            atoms,
            [word for form in self._form_words for word in form],
            duties,
            [word for condition in self._condition_words for word in condition],
            accesses,
        )
        counts = [len(self._sizes), len(self._atoms), len(self._forms), len(self._duties), len(self._condition_words)]
        return [Reason.NONE, *counts, len(self.resolved.accesses), *(word for part in parts for word in part)]

    def _all_atoms(self) -> list[int]:
        """Return the words of the atoms. What bounds a loop may have atoms of its own, and so on."""
        words: list[int] = []
        done = 0
        while done < len(self._atoms):
            kind, first, second = atom = list(self._atoms)[done]
            if kind == AtomKind.ROUND:
                first, second = self._set(self._condition(each) for each in self.resolved.bounds[atom]), 0
            elif kind == AtomKind.QUOTIENT:
                first, second = self._form(self.resolved.forms.divided[first]), self._size(second)
            elif kind == AtomKind.BELOW:
                first, second = self._size(first), 0
            words += (kind, first, second)
            done += 1
        return words

    def _size(self, number: int) -> int:
        if number not in self._sizes:
            kind, first, second = self.resolved.forms.sizes.all[number]
            if kind >= SizeKind.ADD:
                first = self._size(first)
                second = self._size(second) if kind < SizeKind.SIGNED_32 else 0
            self._sizes[number] = len(self._sizes)
            self._size_words += (kind, first, second)
        return self._sizes[number]

    def _atom(self, atom: Atom) -> int:
        return self._atoms.setdefault(atom, len(self._atoms))

    def _form(self, form: Form) -> int:
        core = form.core
        if core not in self._forms:
            terms = [word for atom, factor in core.terms for word in (self._atom(atom), self._size(factor))]
            self._forms[core] = len(self._forms)
            rest = [0] * (2 * TERMS_MAX - len(terms))
            self._form_words.append([self._size(core.constant), len(core.terms), *terms, *rest])
        return self._forms[core]

    def _duty_set(self, form: Form) -> int:
        numbers = []
        for each, range_ in form.duties:
            self._form(each)
            numbers.append(self._duties.setdefault((each, range_), len(self._duties)))
        return self._set(sorted(numbers))

    def _set(self, numbers: Iterable[int]) -> int:
        bits = 0
        for each in numbers:
            if each >= _SET_MAX:
                raise _Full
            bits |= 1 << each
        return bits

    def _condition(self, condition: Condition | Repeated) -> int:
        if condition not in self._conditions:
            if isinstance(condition, Repeated):
                words = [self._form(condition.again), 0, self._form(condition.first), self._atom(condition.round)]
                duties = self._duty_set(condition.again) | self._duty_set(condition.first)
            else:
                words = [self._form(condition.form), int(condition.differs), _NOBODY, _NOBODY]
                duties = self._duty_set(condition.form)
            self._conditions[condition] = len(self._conditions)
            self._condition_words.append([*words, duties])
        return self._conditions[condition]

    def _access(self, access: Access) -> list[int]:
        used = {atom for atom, _ in access.place.terms}
        conditions: list[Condition | Repeated] = [
            each for each in sorted(access.conditions, key=str) if not each.differs and _is_within(each.form, used)
        ]
        for header in sorted(access.entered):
            conditions += [each for each in self.resolved.repeated[header] if _is_within(each.again, used)]
        bases = [self._size(each) for each in _bases(access)]
        operation = sum(ord(each) << 8 * place for place, each in enumerate(access.operation.replace(" ", "")[:7]))
        return [
            *(access.use, self._form(access.place), access.bytes, operation),
            *(self._duty_set(access.place), self._set(map(self._condition, conditions))),
            *(len(bases), *bases, *[0] * (BASES_MAX - len(bases))),
        ]


def _is_within(form: Form, used: set[Atom]) -> bool:
    return bool(form.terms) and ANYTHING not in used and all(atom in used for atom, _ in form.terms)
