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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from quiesce.leaks.explaining.paths import attributes_of
from quiesce.leaks.explaining.ran_code import mro_of

HEAP_TYPE: Final = 1 << 9
"""The flag of a class that was made at run time (Py_TPFLAGS_HEAPTYPE)."""

HOLDERS_MAX: Final = 30
"""How many objects are looked at that refer to a container: what more refer to is no container of one name."""

_FOLLOWED: Final = (dict, tuple, list, deque)
"""What has no name itself, and is asked what refers to it."""

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
    methods: list[tuple[Any, str, str]] = field(default_factory=list)
    """Instances, with the attribute that is a method of the container, and the name of that."""
    caches: list[Any] = field(default_factory=list)
    """What :func:`functools.lru_cache` made, if the container is its dictionary."""

    def all(self) -> Iterator[str]:
        """Yield each name that code may mention."""
        yield from (name for _, name, _ in self.variables)
        yield from (name for _, name, _ in self.attributes)
        yield from (name for name, _ in self.arguments)
        yield from (name for _, name, _ in self.methods)


class Holders:
    """Finds what refers to objects. All objects of the process are looked at each time, so it is asked for many."""

    def __init__(self, asked: Sequence[Any]) -> None:
        self._known: dict[int, list[Any]] = {}
        self._own = {id(self._known), id(asked)}

    def of(self, target: Any) -> list[Any]:
        """Return what refers to an object, of very many only some."""
        if id(target) not in self._known:
            self.find([target])
        return self._known[id(target)]

    def find(self, targets: list[Any]) -> None:
        """Find what refers to each of these objects."""
        self._own.add(id(targets))
        targets = [each for each in targets if id(each) not in self._known]
        if not targets:
            return
        for each in targets:
            held: list[Any] = []
            self._known[id(each)] = held
            self._own.add(id(held))
        wanted = frozenset(map(id, targets))
        self._own.add(id(targets))
        for holder in gc.get_referrers(*targets):
            if id(holder) in self._own or type(holder) is types.FrameType:
                continue
            for key in wanted.intersection(map(id, gc.get_referents(holder))):
                if len(self._known[key]) < HOLDERS_MAX:
                    self._known[key].append(holder)


def names_of(containers: Sequence[Any]) -> list[Names]:
    """Return the names of each of these containers, and of what holds it among its entries."""
    holders, asked = Holders(containers), list(containers)
    holders.find(asked)
    modules = {id(attributes_of(each)): each for each in list(sys.modules.values()) if _is_module(each)}
    held_by = [each for container in containers for each in holders.of(container)]
    holders.find([each for each in held_by if type(each) in _FOLLOWED and id(each) not in modules])
    return [_OneName(container, holders, modules).names for container in containers]


class _OneName:
    """Collects the names of one container."""

    def __init__(self, container: Any, holders: Holders, modules: Mapping[int, Any]) -> None:
        self.names = Names()
        self._holders = holders
        self._modules = modules
        for outer in self._add(container, 0):
            self._add(outer, 1)

    def _add(self, target: Any, depth: int) -> list[Any]:
        """Add the names of a container; return the containers that hold it."""
        names = self.names
        if any(type.__dict__["__flags__"].__get__(base) & HEAP_TYPE for base in mro_of(type(target))):
            names.own_class.append((target, depth))
        outer: list[Any] = []
        for each in self._holders.of(target):
            kind = type(each)
            if kind is dict:
                outer.extend(self._add_namespace(each, target, depth))
            elif kind is types.CellType:
                names.cells.append((each, depth))
            elif kind is tuple:
                owners = (owner for owner in self._holders.of(each) if type(owner) is types.FunctionType)
                names.defaults.extend((owner, name, depth) for owner in owners for name in _defaults(owner, target))
            elif kind is functools._lru_cache_wrapper:
                names.caches.append(each)
            elif kind is types.BuiltinMethodType:
                names.methods.extend(self._method_names(each) if depth == 0 else ())
            elif issubclass(kind, dict | list | deque):
                outer.append(each)
            else:
                names.attributes.extend((each, name, depth) for name in _attributes(each, target))
        return outer

    def _add_namespace(self, namespace: dict[str, Any], target: Any, depth: int) -> list[Any]:
        """Add the names in a dictionary, which is a module's, a class's, an instance's, a function's or nobody's."""
        found = list(_keys(namespace, target))
        if id(namespace) in self._modules:
            for name in found:
                self.names.variables.append((namespace, name, depth))
                self.names.attributes.append((self._modules[id(namespace)], name, depth))
            return []
        is_owned = False
        for owner in self._holders.of(namespace):
            kind = type(owner)
            if kind is types.FunctionType:
                self.names.defaults.extend((owner, name, depth) for name in _defaults(owner, target))
                is_owned = is_owned or owner.__kwdefaults__ is namespace
            elif issubclass(kind, type) or (kind not in _FOLLOWED and attributes_of(owner) is namespace):
                self.names.attributes.extend((owner, name, depth) for name in found)
                is_owned = True
        if is_owned:
            return []
        self.names.arguments.extend((name, depth) for name in found if name.isidentifier())
        return [namespace]

    def _method_names(self, method: types.BuiltinMethodType) -> Iterator[tuple[Any, str, str]]:
        """Yield the attributes that stand for a method of the container, as in ``self._append = items.append``."""
        for holder in self._holders.of(method):
            if type(holder) is not dict:
                owners = [holder]
            else:
                owners = [each for each in self._holders.of(holder) if attributes_of(each) is holder]
            yield from ((owner, name, method.__name__) for owner in owners for name in _attributes(owner, method))


def _is_module(each: Any) -> bool:
    return issubclass(type(each), types.ModuleType)


def _keys(namespace: dict[Any, Any], target: Any) -> Iterator[str]:
    for key, value in list(dict.items(namespace)):
        if value is target and type(key) is str:
            yield key


def _attributes(owner: Any, target: Any) -> Iterator[str]:
    if issubclass(type(owner), type):
        yield from _keys(dict(type.__dict__["__dict__"].__get__(owner)), target)
        return
    attributes = attributes_of(owner)
    if type(attributes) is dict:
        yield from _keys(attributes, target)
    for base in mro_of(type(owner)):
        for name, slot in list(type.__dict__["__dict__"].__get__(base).items()):
            if type(slot) is types.MemberDescriptorType and _slot(slot, owner) is target:
                yield name


def _slot(slot: Any, owner: Any) -> Any:
    try:
        return slot.__get__(owner)
    except AttributeError:  # it is empty
        return UNKNOWN


def _defaults(function: types.FunctionType, target: Any) -> Iterator[str]:
    code, values = function.__code__, function.__defaults__ or ()
    arguments = code.co_varnames[: code.co_argcount]
    named = zip(arguments[len(arguments) - len(values) :], values, strict=False)
    yield from (name for name, value in named if value is target)
    yield from _keys(function.__kwdefaults__ or {}, target)


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
            is_slot = type(value) is types.MemberDescriptorType
            return value if not is_slot else UNKNOWN if issubclass(type(owner), type) else _slot(value, owner)
    return UNKNOWN


def is_weak(owner: Any) -> bool:
    """Whether a container of weak references lets go of entries by itself."""
    return issubclass(type(owner), WEAK)
