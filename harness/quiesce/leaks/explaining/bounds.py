"""What the code that ran says of the bound of a container: how many entries it may hold, or what takes them out.

Sources are read, not bytecode: they show what is done in which branch, and are the same for all versions of Python.
"""

from __future__ import annotations

import ast
import functools
import types
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from quiesce.leaks.explaining.bound_names import UNKNOWN, Names, attribute, is_weak, names_of
from quiesce.leaks.explaining.guards import REMOVALS, Bound, BoundKind, Guards
from quiesce.leaks.explaining.paths import attributes_of
from quiesce.leaks.explaining.ran_code import RanCode, RanFunction, codes_that_run
from quiesce.leaks.explaining.seen_names import SeenNames, last_name
from quiesce.leaks.explaining.shapes import CLOCKS, is_clock, is_length, told_the_time
from quiesce.leaks.meters.contents import size_of

__all__ = ["Bound", "BoundKind", "BoundReader", "codes_that_run"]

DECLARING: Final = frozenset(
    [
        "maxsize",
        "maxlen",
        "max_size",
        "max_len",
        "maxentries",
        "max_entries",
        "maxitems",
        "max_items",
    ]
)
"""Names of attributes that say how much their object holds at most."""

FUNCTIONS_MAX: Final = 80
"""How many functions are read for one container."""

STEPS_MAX: Final = 2
"""How far a container is followed from function to function."""

CALLERS_MAX: Final = 40


class BoundReader:
    """Reads bounds from the code that ``ran``; from all code if that is None.

    Functions are listed once, when the first container is asked for. What is frozen (:func:`gc.freeze`) refers to
    nothing that can be found: call :func:`gc.unfreeze` before.
    """

    def __init__(self, ran: Collection[types.CodeType] | None) -> None:
        self._ran = ran
        self._told: dict[int, frozenset[str]] = {}

    @functools.cached_property
    def _code(self) -> RanCode:
        return RanCode(self._ran)

    def bound_of(self, container: Any) -> Bound:
        """Return the strongest bound that code names for a container.

        Of several numbers the largest counts, as it takes the longest to show that it does not hold. A number that the
        container has passed already is no bound.
        """
        return self.bounds_of([container])[0]

    def bounds_of(self, containers: Sequence[Any]) -> list[Bound]:
        """Return the bound of each of these containers, which costs little more than that of one."""
        try:
            named = names_of(containers)
        except Exception:  # tested code may keep anything, and a check must not fail for it
            named = [Names() for _ in containers]
        return [self._bound_of(container, names) for container, names in zip(containers, named, strict=True)]

    def _bound_of(self, container: Any, names: Names) -> Bound:
        declared = _declared(container)
        if declared.kind is not BoundKind.NONE:
            return declared
        try:
            return _strongest(self._bounds(container, names), size_of(container))
        except Exception:
            return Bound()

    def _bounds(self, container: Any, names: Names) -> list[Bound]:
        found = [_declared(cache) for cache in names.caches]
        found += [Bound(BoundKind.REMOVES) for owner, _, _ in names.attributes if is_weak(owner)]
        found += self._declared_by(names)
        found += _OneContainer(self._code, names, self._is_told).bounds()
        if attribute(type(container), "__missing__") is not UNKNOWN:
            found.append(Bound(BoundKind.MEMO))
        return found

    def _declared_by(self, names: Names) -> Iterator[Bound]:
        """Yield what holders of the container say of its size, if code that ran asks them."""
        for owner in (
            *(owner for owner, _, depth in names.attributes if not depth),
            *(own for own, _ in names.own_class),
        ):
            attributes = attributes_of(owner)
            for name in list(attributes) if type(attributes) is dict else ():
                plain = name.rpartition("__")[2].lstrip("_") if type(name) is str else ""
                if plain not in DECLARING or type(attributes[name]) is not int or attributes[name] < 1:
                    continue
                for function in self._code.mentioning(name):
                    if function.is_method_of(type(owner)) and not self._is_of_another(function, names):
                        place = f"{function.code.co_filename}:{self._line_of(function, name)}"
                        yield Bound(BoundKind.DECLARED, attributes[name], place)

    def _is_of_another(self, function: RanFunction, names: Names) -> bool:
        """Whether a function compares the length of another container, which then is the one that is bounded."""
        node = self._code.node(function.code)
        if node is None:
            return False
        ours = {name for _, name, _ in names.attributes} | {function.self_name}
        compared = (
            (each for each in self._code.parts(function.code, node) if isinstance(each, ast.Compare)) if node else ()
        )
        asked = (part.args[0] for each in compared for part in ast.walk(each) if is_length(part))
        return any(function.mangled(last_name(each)) not in ours for each in asked)

    def _line_of(self, function: RanFunction, name: str) -> int:
        node = self._code.node(function.code)
        named = (each for each in ast.walk(node) if isinstance(each, ast.Attribute)) if node is not None else ()
        lines = [each.lineno for each in named if function.mangled(each.attr) == name]
        return min(lines, default=function.code.co_firstlineno)

    def _is_told(self, function: RanFunction) -> bool:
        """Whether code that ran calls a function with the time, or because of the time."""
        name = function.code.co_name
        callers = (each for each in self._code.mentioning(name) if _may_read_clock(each))
        return any(name in self._told_by(caller) for caller, _ in zip(callers, range(CALLERS_MAX), strict=False))

    def _told_by(self, caller: RanFunction) -> frozenset[str]:
        key = id(caller.code)
        if key not in self._told:
            node = self._code.node(caller.code)
            self._told[key] = frozenset() if node is None else told_the_time(node)
        return self._told[key]


class _OneContainer:
    """Reads the functions that name one container, and those that they hand it to."""

    def __init__(self, code: RanCode, names: Names, is_told: Any) -> None:
        self._code = code
        self._names = names
        self._is_told = is_told
        self._is_more = False
        self._passed: dict[int, dict[str, int]] = {}
        self._functions: dict[int, RanFunction] = {}
        self._lengths: dict[str, list[RanFunction]] = {}
        self._returning: dict[str, list[RanFunction]] = {}

    def bounds(self) -> list[Bound]:
        """Return all bounds that are named."""
        self._take(sorted(self._first(), key=self._distance))
        seen = self._seen()
        for _ in range(STEPS_MAX):
            self._is_more = False
            for names in seen:
                self._follow(names)
            if not self._is_more:
                break
            seen = self._seen()
        unread = [each for each in self._functions.values() if self._code.node(each.code) is None]
        found = [_bound_without_source(each) for each in unread]
        for names in seen:
            if self._lengths or names.is_mentioned():
                found += self._read(names)
        return found

    def _distance(self, function: RanFunction) -> int:
        """Return how far a function is from what has the container: if there are many, the nearest are read."""
        kinds = [type(owner) for owner, _, _ in self._names.attributes]
        if any(function.is_method_of(kind) for kind in kinds):
            return 0
        modules = {attribute(kind, "__module__") for kind in kinds}
        return 1 if function.module in modules or not function.class_name else 2

    def _first(self) -> Iterator[RanFunction]:
        for name in self._names.all():
            yield from self._code.mentioning(name)
        for cell, _ in self._names.cells:
            yield from self._code.with_cell(cell)
        for function, _, _ in self._names.defaults:
            yield from self._code.of(function)
        for container, _ in self._names.own_class:
            yield from self._code.methods_of(type(container))

    def _take(self, functions: Iterable[RanFunction]) -> None:
        for each in functions:
            if id(each) not in self._functions and len(self._functions) < FUNCTIONS_MAX:
                self._functions[id(each)] = each
                self._is_more = True

    def _seen(self) -> list[SeenNames]:
        found = []
        for each in list(self._functions.values()):
            node = self._code.node(each.code)
            if node is not None:
                passed = self._passed.get(id(each), {})
                whole = self._code.parts(each.code, node)
                found.append(SeenNames(each, node, self._names, passed, self._returning, whole))
        return found

    def _follow(self, names: SeenNames) -> None:
        """Take the functions to which one hands the container, and those that call it for the container."""
        for node in names.parts:
            if isinstance(node, ast.Call):
                self._pass(names, node)
            elif isinstance(node, ast.Return) and node.value is not None:
                self._note_returned(names, node.value)

    def _pass(self, names: SeenNames, node: ast.Call) -> None:
        given = [(at, depth) for at, each in enumerate(node.args) if (depth := names.depth(each)) is not None]
        named = [(word.arg, depth) for word in node.keywords if (depth := names.depth(word.value)) is not None]
        if not given and not named:
            return
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for function in self._code.called(called):
            arguments = function.arguments[1:] if function.class_name else function.arguments
            found = {arguments[at]: depth for at, depth in given if at < len(arguments)}
            found.update((word, depth) for word, depth in named if word in arguments)
            if found:
                self._take([function])
                known = self._passed.setdefault(id(function), {})
                self._is_more = self._is_more or not found.items() <= known.items()
                known.update(found)

    def _note_returned(self, names: SeenNames, value: ast.expr) -> None:
        is_length = (
            isinstance(value, ast.Call)
            and getattr(value.func, "id", "") == "len"
            and len(value.args) == 1
            and names.is_container(value.args[0])
        )
        if not is_length and not names.is_container(value):
            return
        function, name = names.function, names.function.code.co_name
        known = (self._lengths if is_length else self._returning).setdefault(name, [])
        if function not in known:
            known.append(function)
            self._is_more = True
            self._take(self._code.mentioning(name))
            if name == "__len__":
                owners = (owner for owner, _, _ in self._names.attributes)
                self._take(
                    each
                    for owner in owners
                    for each in self._code.methods_of(type(owner))
                    if "len" in each.code.co_names
                )

    def _read(self, names: SeenNames) -> list[Bound]:
        function = names.function
        drops = self._dropped(names)
        guards = Guards(names, self._lengths, reads_clock=False, drops=drops)
        if not any(bound.kind is BoundKind.REMOVES for bound in guards.found):
            return guards.found
        if any(is_clock(node, names) for node in names.parts) or self._is_told(function):
            return Guards(names, self._lengths, reads_clock=True, drops=drops).found
        return guards.found

    def _dropped(self, names: SeenNames) -> frozenset[str]:
        """Return the counters of a function that other code that ran counts down."""
        risen = _counted(names.parts, ast.Add)
        return frozenset(
            name
            for name in risen
            for other in self._code.mentioning(name)
            if other is not names.function and (node := self._code.node(other.code)) is not None
            if name in _reset_in(self._code.parts(other.code, node))
        )


def _counted(nodes: Iterable[ast.AST], operator: type[ast.operator]) -> frozenset[str]:
    counters = (each.target for each in nodes if isinstance(each, ast.AugAssign) and isinstance(each.op, operator))
    return frozenset(getattr(each, "attr", getattr(each, "id", "")) for each in counters) - {""}


def _reset_in(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Return the names that are counted down there, or get another value."""
    targets = (target for each in nodes if isinstance(each, ast.Assign) for target in each.targets)
    return _counted(nodes, ast.Sub) | frozenset(last_name(each) for each in targets) - {""}


def _may_read_clock(function: RanFunction) -> bool:
    names = (*function.code.co_names, *function.code.co_freevars)
    return any(name.strip("_").removesuffix("_ns") in CLOCKS for name in names)


def _bound_without_source(function: RanFunction) -> Bound:
    """Guess from the names in code whose source is not there."""
    is_removal = not REMOVALS.isdisjoint(function.code.co_names)
    place = f"{function.code.co_filename}:{function.code.co_firstlineno}"
    return Bound(BoundKind.REMOVES, None, place) if is_removal else Bound()


def _strongest(bounds: Iterable[Bound], size: int) -> Bound:
    holding = [bound for bound in bounds if bound.most is None or bound.most >= size]
    return max(holding, key=lambda bound: (bound.kind.value, bound.most or 0), default=Bound())


def _declared(container: Any) -> Bound:
    """Return what a container was made with."""
    kind = type(container)
    if kind is functools._lru_cache_wrapper:
        most = container.cache_parameters()["maxsize"]
        code = getattr(attribute(container, "__wrapped__"), "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}" if type(code) is types.CodeType else ""
        return Bound(BoundKind.MEMO, None, place) if most is None else Bound(BoundKind.DECLARED, most, place)
    if issubclass(kind, deque):
        most = deque.maxlen.__get__(container)
        return Bound() if most is None else Bound(BoundKind.DECLARED, most)
    return Bound()
