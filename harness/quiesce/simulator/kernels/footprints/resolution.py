"""What registers have in the rounds of loops: what grows evenly is its first value and a step for each round."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quiesce.simulator.kernels.footprints.evaluation import Condition
from quiesce.simulator.kernels.footprints.forms import UNKNOWN, Atom, AtomKind, Form, Forms
from quiesce.simulator.kernels.footprints.walk import Access, Round, Walked


@dataclass(frozen=True, slots=True)
class Repeated:
    """A condition that holds after each round but the last, and one where the loop is entered.

    If they say the same of what comes next and of what is first, it holds in each round, of what is then.
    """

    again: Form
    first: Form
    round: Atom


@dataclass(slots=True)
class Resolved:
    """Accesses and conditions in which rounds are the only thing that is said of loops."""

    forms: Forms
    accesses: list[Access] = field(default_factory=list)
    bounds: dict[Atom, tuple[Condition, ...]] = field(default_factory=dict)
    """Of the rounds of each loop: what holds where one more follows."""
    repeated: dict[int, tuple[Repeated, ...]] = field(default_factory=dict)


def resolve(walked: Walked) -> Resolved:
    """Return what was walked, without registers that loops carry."""
    forms = walked.forms
    known: dict[Atom, Form] = {}
    for each in walked.rounds:
        known |= _values(forms, each, known)
    found = Resolved(forms)
    for each in walked.rounds:
        atom = round_of(each.loop.header)
        again = [_substituted(forms, condition, known) for condition in each.again]
        entry = [_substituted(forms, condition, known) for condition in each.conditions]
        found.bounds[atom] = tuple(c for c in again if _has(c.form, atom))
        found.repeated[each.loop.header] = tuple(
            Repeated(last.form, first.form, atom)
            for last in found.bounds[atom]
            for first in entry
            if not last.differs and not first.differs and _is_like(last.form, first.form, atom)
        )
    for access in walked.accesses:
        conditions = frozenset(_substituted(forms, each, known) for each in access.conditions)
        found.accesses.append(replace(access, place=forms.substitute(access.place, known), conditions=conditions))
    return found


def round_of(header: int) -> Atom:
    """Return the atom that counts the rounds of a loop."""
    return (AtomKind.ROUND, header, 0)


def _values(forms: Forms, round_: Round, known: dict[Atom, Form]) -> dict[Atom, Form]:
    """Return what the registers are that a loop carries."""
    found: dict[Atom, Form] = {}
    counted = forms.atom(round_of(round_.loop.header))
    for atom, first in round_.first.items():
        steps = {forms.add(each, forms.atom(atom), -1).core for each in round_.next[atom]}
        grows = len(steps) == 1 and next(iter(steps)).is_size
        is_same = all(each.bases <= first.bases for each in round_.next[atom])
        value = forms.anything()
        if grows and is_same:
            start = forms.substitute(replace(first, bases=frozenset()), known)
            value = forms.add(start, forms.scale(counted, next(iter(steps)).constant))
        found[atom] = value if is_same else replace(forms.anything(), bases=frozenset({UNKNOWN}))
    together = known | found
    for atom, value in found.items():
        duties = frozenset(duty for each in round_.next[atom] for duty in each.duties)
        if value.is_known:
            found[atom] = replace(value, duties=value.duties | forms.substitute_all(duties, together))
    return found


def _substituted(forms: Forms, condition: Condition, known: dict[Atom, Form]) -> Condition:
    return replace(condition, form=forms.substitute(condition.form, known))


def _has(form: Form, atom: Atom) -> bool:
    return any(each == atom for each, _ in form.terms)


def _is_like(last: Form, first: Form, atom: Atom) -> bool:
    """Say whether two forms have the same atoms, apart from one."""
    return {each for each, _ in last.terms} - {atom} == {each for each, _ in first.terms}
