"""The mutations of a file: those of mutmut, and some of conditions, but none of strings, annotations and decorators.

A place of the code is drawn first and then one of its mutations, for there are six of each call with three arguments.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import libcst as cst
from mutmut.mutation.mutators import mutation_operators, operator_string

Operator = Callable[[Any], Iterable[cst.CSTNode]]


def _decided(node: cst.If) -> Iterator[cst.CSTNode]:
    """Take a branch always, or never."""
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.BooleanOperation(test, cst.Or(), cst.Name("True")))
    yield node.with_changes(test=cst.BooleanOperation(test, cst.And(), cst.Name("False")))


def _unfiltered(node: cst.CompFor) -> Iterator[cst.CSTNode]:
    """Leave a condition of a comprehension out."""
    for number in range(len(node.ifs)):
        yield node.with_changes(ifs=[*node.ifs[:number], *node.ifs[number + 1 :]])


def _without_an_alternative(node: cst.ComparisonTarget) -> Iterator[cst.CSTNode]:
    """Leave out one of the things that something may be among."""
    among = node.comparator
    if isinstance(node.operator, cst.In | cst.NotIn) and isinstance(among, cst.Tuple | cst.List | cst.Set):
        for number in range(len(among.elements) if len(among.elements) > 2 else 0):
            fewer = [*among.elements[:number], *among.elements[number + 1 :]]
            yield node.with_changes(comparator=among.with_changes(elements=fewer))


_OPERATORS: Final[Sequence[tuple[type, Operator]]] = [
    *(each for each in mutation_operators if each[1] is not operator_string),
    (cst.If, _decided),
    (cst.CompFor, _unfiltered),
    (cst.ComparisonTarget, _without_an_alternative),
]
_UNTOUCHED: Final = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.SimpleString)
_TEXTS: Final = (cst.SimpleString, cst.ConcatenatedString)
_FAIL_AT_ONCE: Final = ("isinstance", "len")
"""Calls of these with other arguments raise, whatever is tested; mutmut leaves them alone as well."""
_Place = tuple[cst.CSTNode, list[cst.CSTNode]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file: whole lines, from ``line`` on, and the lines in their place."""

    path: str
    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def key(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """What stays the same when lines are added elsewhere in the file."""
        return self.path, self.removed, self.added

    def lines_in(self, source: str) -> range | None:
        """Return the lines that it changes, where they are now; None where they are gone."""
        lines = source.splitlines()
        size = len(self.removed)
        places = [at for at in range(len(lines) - size + 1) if tuple(lines[at : at + size]) == self.removed]
        at = min(places, key=lambda place: abs(place + 1 - self.line), default=None)
        return None if at is None else range(at + 1, at + 1 + size)

    def apply(self, source: str, changed: range) -> str:
        """Return a source with other lines in place of these."""
        lines = source.splitlines()
        return "\n".join([*lines[: changed.start - 1], *self.added, *lines[changed.stop - 1 :], ""])

    def __str__(self) -> str:
        changes = [*(f"- {line}" for line in self.removed), *(f"+ {line}" for line in self.added)]
        return "\n".join([f"{self.path}:{self.line}", *changes])


def _places(node: cst.CSTNode) -> Iterator[_Place]:
    """Yield each node that can be changed, with what can stand in its place."""
    if isinstance(node, _UNTOUCHED) or (isinstance(node, cst.AnnAssign) and _names_a_type(node)):
        return
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _FAIL_AT_ONCE):
        others = [other for kind, operator in _OPERATORS if isinstance(node, kind) for other in operator(node)]
        if others := [other for other in others if not isinstance(getattr(other, "value", None), _TEXTS)]:
            yield node, others
    for child in node.children:
        yield from _places(child)


def _names_a_type(node: cst.AnnAssign) -> bool:
    return "TypeAlias" in cst.Module([]).code_for_node(node.annotation.annotation)


def count_places(source: str) -> int:
    """Return at how many places of a source there is a mutation."""
    return sum(1 for _ in _places(cst.parse_module(source)))


def mutants_at(path: str, source: str, numbers: Sequence[int], seed: int) -> Iterator[Mutant]:
    """Yield one of the mutations at each of some places, by their numbers."""
    module = cst.parse_module(source)
    places = list(_places(module))
    before = source.splitlines()
    for number in numbers:
        node, others = places[number]
        other = random.Random(f"{seed} {path} {number}").choice(others)  # noqa: S311 - reproducible, not secret
        changed = module.deep_replace(node, other)
        assert isinstance(changed, cst.Module)
        yield _difference(path, before, changed.code.splitlines())


def _difference(path: str, before: list[str], after: list[str]) -> Mutant:
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    removed, added = before[start : len(before) - end], after[start : len(after) - end]
    if not removed:  # lines are told apart by those before them
        start -= 1
        removed, added = [before[start]], [before[start], *added]
    return Mutant(path, start + 1, tuple(removed), tuple(added))
