"""How code names a container: a variable of a module, an attribute, a variable of a closure, a default, an entry.

No code of the program runs: attributes are read from dictionaries and slots.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quiesce.leaks.explaining.paths import attributes_of
from quiesce.leaks.explaining.ran_code import mro_of

HEAP_TYPE: Final = 1 << 9
"""The flag of a class that was made at run time (Py_TPFLAGS_HEAPTYPE)."""

HOLDERS_MAX: Final = 30
"""How many objects are looked at that refer to a container: what more refer to is no container of one name."""

WEAK: Final = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet)

UNKNOWN: Final = object()


@dataclass(slots=True)
class Names:
    """The names of one container. ``depth`` 1 in a row of these names what holds it: ``POOLS`` in ``POOLS["a"]``."""

    variables: list[tuple[Mapping[str, Any], str, int]] = field(default_factory=list)
    """Dictionaries of modules with the name in them."""
    attributes: list[tuple[Any, str, int]] = field(default_factory=list)
    """Instances, classes and modules, with the name of their attribute."""
    cells: list[tuple[types.CellType, int]] = field(default_factory=list)
    defaults: list[tuple[types.FunctionType, str, int]] = field(default_factory=list)
    arguments: list[tuple[str, int]] = field(default_factory=list)
    """Names under which a dictionary holds it, as it does what a function is called with."""
    own_class: list[tuple[Any, int]] = field(default_factory=list)
    """Containers whose class has methods written in Python."""
    caches: list[Any] = field(default_factory=list)
    """What :func:`functools.lru_cache` made, if the container is its dictionary."""

    def all(self) -> Iterator[str]:
        """Yield each name that code may mention."""
        yield from (name for _, name, _ in self.variables)
        yield from (name for _, name, _ in self.attributes)
        yield from (name for name, _ in self.arguments)


def names_of(container: Any) -> Names:
    """Return the names of a container, and of what holds it among its entries."""
    found = Names()
    outer = _add(found, [container], 0)
    if outer:
        _add(found, outer, 1)
    return found


def _add(names: Names, targets: list[Any], depth: int) -> list[Any]:
    """Add the names of some containers; return the containers that hold these."""
    wanted = frozenset(map(id, targets))
    for target in targets:
        if any(type.__dict__["__flags__"].__get__(base) & HEAP_TYPE for base in mro_of(type(target))):
            names.own_class.append((target, depth))
    ours = (id(targets), id(names.own_class), id(names.attributes), id(names.caches))
    holders = [
        each
        for each in gc.get_referrers(*targets)
        if id(each) not in ours and type(each) is not types.FrameType and not _is_of_names(each, names)
    ][:HOLDERS_MAX]
    modules = {id(attributes_of(each)): each for each in list(sys.modules.values()) if _is_module(each)}
    namespaces: list[dict[str, Any]] = []
    tuples: list[Any] = []
    outer: list[Any] = []
    for each in holders:
        kind = type(each)
        if kind is dict and id(each) in modules:
            for name in _keys(each, wanted):
                names.variables.append((each, name, depth))
                names.attributes.append((modules[id(each)], name, depth))
        elif kind is dict:
            namespaces.append(each)
        elif kind is types.CellType:
            names.cells.append((each, depth))
        elif kind is tuple:
            tuples.append(each)
        elif kind is functools._lru_cache_wrapper:
            names.caches.append(each)
        elif issubclass(kind, dict | list | deque):
            outer.append(each)
        else:
            names.attributes.extend((each, name, depth) for name in _attributes(each, wanted))
    if namespaces or tuples:
        outer.extend(_add_owned(names, namespaces, tuples, wanted, depth))
    return outer


def _add_owned(
    names: Names, namespaces: list[dict[str, Any]], tuples: list[Any], wanted: frozenset[int], depth: int
) -> list[Any]:
    """Add the attributes of instances and defaults of functions; return dictionaries that are neither's."""
    left = {id(each): each for each in namespaces}
    kept = {id(each) for each in tuples}
    for owner in gc.get_referrers(*namespaces, *tuples)[: HOLDERS_MAX * (len(namespaces) + len(tuples))]:
        kind = type(owner)
        if kind is types.FunctionType:
            names.defaults.extend((owner, name, depth) for name in _defaults(owner, wanted, kept))
            left.pop(id(owner.__kwdefaults__), None)
        elif kind not in (list, tuple, dict, types.FrameType):
            if issubclass(kind, type):
                names.attributes.extend((owner, name, depth) for name in _attributes(owner, wanted))
                own = frozenset(map(id, gc.get_referents(owner)))  # its dictionary shows itself only in a proxy
                left = {key: each for key, each in left.items() if key not in own}
            elif (namespace := left.pop(id(attributes_of(owner)), None)) is not None:
                names.attributes.extend((owner, name, depth) for name in _keys(namespace, wanted))
    for each in left.values():
        names.arguments.extend((name, depth) for name in _keys(each, wanted) if name.isidentifier())
    return list(left.values())


def _is_of_names(each: Any, names: Names) -> bool:
    return type(each) is tuple and len(each) == 2 and any(each is known for known in names.own_class)


def _is_module(each: Any) -> bool:
    return issubclass(type(each), types.ModuleType)


def _keys(namespace: dict[Any, Any], wanted: frozenset[int]) -> Iterator[str]:
    for key, value in list(dict.items(namespace)):
        if id(value) in wanted and type(key) is str:
            yield key


def _attributes(owner: Any, wanted: frozenset[int]) -> Iterator[str]:
    if issubclass(type(owner), type):
        shown = type.__dict__["__dict__"].__get__(owner)
        yield from (key for key, value in list(shown.items()) if id(value) in wanted)
        return
    attributes = attributes_of(owner)
    if type(attributes) is dict:
        yield from _keys(attributes, wanted)
    yield from (name for name, value in _slots_of(owner) if id(value) in wanted)


def _slots_of(owner: Any) -> Iterator[tuple[str, Any]]:
    for base in mro_of(type(owner)):
        for name, slot in list(type.__dict__["__dict__"].__get__(base).items()):
            if type(slot) is types.MemberDescriptorType:
                try:
                    yield name, slot.__get__(owner)
                except AttributeError:
                    continue  # an empty slot


def _defaults(function: types.FunctionType, wanted: frozenset[int], kept: set[int]) -> Iterator[str]:
    if id(function.__defaults__) in kept:
        code, values = function.__code__, function.__defaults__ or ()
        arguments = code.co_varnames[: code.co_argcount]
        named = zip(arguments[len(arguments) - len(values) :], values, strict=False)
        yield from (name for name, value in named if id(value) in wanted)
    yield from _keys(function.__kwdefaults__ or {}, wanted)


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute that an object or a class has by itself, or ``UNKNOWN``; no code of its class runs."""
    if issubclass(type(owner), type):
        bases = mro_of(owner)
    else:
        attributes = attributes_of(owner)
        if type(attributes) is dict and name in attributes:
            return attributes[name]
        bases = mro_of(type(owner))
    for base in bases:
        shown = type.__dict__["__dict__"].__get__(base)
        if name in shown:
            value = shown[name]
            if type(value) is not types.MemberDescriptorType:
                return value
            try:
                return UNKNOWN if owner is base or issubclass(type(owner), type) else value.__get__(owner)
            except AttributeError:
                return UNKNOWN
    return UNKNOWN


def is_weak(owner: Any) -> bool:
    """Whether a container of weak references lets go of entries by itself."""
    return issubclass(type(owner), WEAK)
