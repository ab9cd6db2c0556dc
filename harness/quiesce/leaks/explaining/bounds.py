"""What the code that ran says of the bound of a container: how many entries it may hold, or what takes them out.

One round is watched. As a call returns, its variables tell which expressions of its function stand for the container.
Sources are read, not bytecode: they show what is done in which branch, and are the same for all versions of Python.
"""

from __future__ import annotations

import ast
import functools
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from quiesce.leaks.explaining.bound_names import UNKNOWN, Target, attribute, targets_of
from quiesce.leaks.explaining.guards import REMOVALS, Bound, BoundKind, Guards
from quiesce.leaks.explaining.paths import attributes_of
from quiesce.leaks.explaining.ran_code import CallWatch, Functions, RanFunction
from quiesce.leaks.explaining.seen_names import SeenNames, last_name
from quiesce.leaks.explaining.shapes import is_clock, is_length, told_the_time
from quiesce.leaks.meters.contents import size_of

__all__ = ["Bound", "BoundKind", "bounds_of"]

DECLARING: Final = frozenset(["maxsize", "maxlen", "maxentries", "maxitems"])
"""Names of attributes that say how much their object holds at most, without underscores."""

READINGS_MAX: Final = 3
"""In how many calls a function is read for one container."""

LOOKS_MAX: Final = 1_000
"""In how many calls it is looked at whether a function that mentions such a name has the container."""


def bounds_of(containers: Sequence[Any], run_round: Callable[[], None]) -> list[Bound]:
    """Run a round; return the strongest bound that its code names for each container.

    Of several numbers the largest counts, as it takes the longest to show that it does not hold. A number that the
    container has passed already is no bound. Where the round cannot be watched, code may take anything out. What is
    frozen (:func:`gc.freeze`) refers to nothing that can be found: call :func:`gc.unfreeze` before.
    """
    functions = Functions()
    readers = [_Reader(target, functions) for target in targets_of(containers)]
    ran: dict[int, types.CodeType] = {}

    def show(frame: types.FrameType) -> None:
        ran[id(frame.f_code)] = frame.f_code
        held = frozenset(map(id, list(frame.f_locals.values())))
        for reader in readers:
            reader.see(frame, held)

    is_seen = CallWatch(show).run(run_round)
    unseen = [] if is_seen else [Bound(BoundKind.REMOVES)]
    return [_strongest([*unseen, *each.bounds(ran.values())], size_of(each.target.container)) for each in readers]


class _Reader:
    """Reads the functions that have one container."""

    def __init__(self, target: Target, functions: Functions) -> None:
        self.target = target
        self._functions = functions
        self._found = [*_declared(target.container), *(each for cache in target.caches for each in _declared(cache))]
        self._counted: list[tuple[str, RanFunction, Bound]] = []
        self._looks: Counter[int] = Counter()
        self._readings: Counter[int] = Counter()

    def see(self, frame: types.FrameType, held: frozenset[int]) -> None:
        """Read the function of a call whose variables hold these, if it may have the container."""
        code, target = frame.f_code, self.target
        if self._readings[id(code)] >= READINGS_MAX or self._looks[id(code)] >= LOOKS_MAX:
            return
        has_it = id(target.container) in held
        if not has_it and target.names.isdisjoint(code.co_names):
            return
        self._looks[id(code)] += 1
        function = self._functions.of(code)
        if function.node is None:
            self._found += _without_source(code)
            self._readings[id(code)] = READINGS_MAX
            return
        names = SeenNames(function, frame, target)
        if has_it or names.is_mentioned():
            self._readings[id(code)] += 1
            self._read(names)

    def _read(self, names: SeenNames) -> None:
        self._note_returned(names)
        guards = Guards(names)
        found = [*guards.found, *_declared_by(names)]
        if any(bound.kind is BoundKind.REMOVES for bound in found) and self._is_timed(names):
            found = [
                replace(each, kind=BoundKind.EXPIRES) if each.kind is BoundKind.REMOVES else each for each in found
            ]
        self._found += found
        self._counted += [(counter, names.function, bound) for counter, bound in guards.counted]

    def _note_returned(self, names: SeenNames) -> None:
        """Note that a function returns the container or its length: its name stands for that from now on."""
        name, target = names.function.code.co_name, self.target
        for node in names.parts:
            if isinstance(node, ast.Return) and node.value is not None:
                is_measured = is_length(node.value) and names.is_sized(node.value.args[0])
                if is_measured or names.is_container(node.value):
                    told = target.measuring if is_measured else target.returning
                    told.setdefault(name, set()).add(id(names.function.code))
                    target.names.update((name, "len") if name == "__len__" else (name,))

    def _is_timed(self, names: SeenNames) -> bool:
        """Whether a function reads a clock, or its caller calls it with the time, or because of the time."""
        if any(is_clock(node, names) for node in names.parts):
            return True
        caller = self._functions.of(names.caller).node if names.caller is not None else None
        return caller is not None and names.function.code.co_name in told_the_time(caller)

    def bounds(self, ran: Iterable[types.CodeType]) -> Iterator[Bound]:
        """Yield all bounds, once the round is over: a counter is none that other code which ran sets back."""
        yield from self._found
        if self.target.is_weak:
            yield Bound(BoundKind.REMOVES)
        if attribute(type(self.target.container), "__missing__") is not UNKNOWN:
            yield Bound(BoundKind.MEMO)
        for counter, function, bound in self._counted:
            others = [code for code in ran if counter in code.co_names and code is not function.code]
            if not any(counter in _reset_in(self._functions.of(code).parts) for code in others):
                yield bound


def _reset_in(parts: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the names that are counted down there, or get another value."""
    for each in parts:
        if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Sub):
            yield last_name(each.target)
        elif isinstance(each, ast.Assign):
            yield from map(last_name, each.targets)


def _declared_by(names: SeenNames) -> Iterator[Bound]:
    """Yield what holders of the container say of its size, if a function asks them and compares no other length."""
    attributes = [each for each in names.parts if isinstance(each, ast.Attribute)]
    plain = [each for each in attributes if each.attr.replace("_", "") in DECLARING]
    compared = [part for each in names.parts if isinstance(each, ast.Compare) for part in ast.walk(each)]
    if any(is_length(part) and not names.is_sized(part.args[0]) for part in compared):
        return
    for each in plain:
        owner, most = names.value(each.value), names.value(each)
        is_owner = id(owner) in names.target.owners or owner is names.target.container
        if is_owner and type(attributes_of(owner)) is dict and type(most) is int and most > 0:
            yield Bound(BoundKind.DECLARED, most, f"{names.function.code.co_filename}:{each.lineno}")


def _without_source(code: types.CodeType) -> Iterator[Bound]:
    """Guess from the names in code whose source is not there."""
    if not REMOVALS.isdisjoint(code.co_names):
        yield Bound(BoundKind.REMOVES, None, f"{code.co_filename}:{code.co_firstlineno}")


def _strongest(bounds: Iterable[Bound], size: int) -> Bound:
    holding = [bound for bound in bounds if bound.most is None or bound.most >= size]
    return max(holding, key=lambda bound: (bound.kind.value, bound.most or 0), default=Bound())


def _declared(container: Any) -> Iterator[Bound]:
    """Yield what a container was made with."""
    kind = type(container)
    if kind is functools._lru_cache_wrapper:
        most = container.cache_parameters()["maxsize"]
        code = getattr(attribute(container, "__wrapped__"), "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}" if type(code) is types.CodeType else ""
        yield Bound(BoundKind.MEMO if most is None else BoundKind.DECLARED, most, place)
    elif issubclass(kind, deque) and (most := deque.maxlen.__get__(container)) is not None:
        yield Bound(BoundKind.DECLARED, most)
