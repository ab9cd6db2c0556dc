"""A container whose bound is looked for: the names of what holds it, and what its code has told so far.

No code of the program runs: attributes are read from dictionaries and slots.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from quiesce.leaks.explaining.paths import WEAK, attributes_of, mro_of, shown_by, slots_of

HOLDERS_MAX: Final = 30
"""How many objects are looked at that refer to a container: what more refer to is no container of one name."""

_OUTER: Final = (dict, list, tuple, deque, types.BuiltinMethodType)
"""What has no name itself, and is asked what refers to it."""

UNKNOWN: Final = object()


class Target:
    """A container, and the names that code must mention to reach it, unless it has it as a variable.

    ``outer`` has it among its entries, or is a method of it; ``owners`` have it as an attribute, as far as code was
    seen to ask them. ``weak`` and ``caches`` hold it and let go of entries by themselves. Functions named in
    ``returning`` return the container and those in ``measuring`` its length; both have the identities of their code.
    """

    def __init__(self, container: Any) -> None:
        self.container = container
        self.names: set[str] = set()
        self.outer: list[Any] = []
        self.owners: dict[int, Any] = {}
        self.caches: list[Any] = []
        self.is_weak = False
        self.measuring: dict[str, set[int]] = {}
        self.returning: dict[str, set[int]] = {}

    def is_outer(self, value: Any) -> bool:
        """Whether an object has the container among its entries."""
        return any(value is each for each in self.outer)


def targets_of(containers: Sequence[Any]) -> list[Target]:
    """Return a target for each container. All objects of the process are looked at, but only twice."""
    modules = {id(attributes_of(each)) for each in list(sys.modules.values())}
    held = _holders(containers)
    holders = {id(each): each for some in held.values() for each in some if isinstance_of(each, _OUTER)}
    wider = _holders([each for key, each in holders.items() if key not in modules])
    targets = []
    for container in containers:
        target = Target(container)
        for holder in held[id(container)]:
            target.names.update(_names_in(holder, container))
            if id(holder) in wider:
                target.outer.append(holder)
            if type(holder) is functools._lru_cache_wrapper:
                target.caches.append(holder)
            owners = wider.get(id(holder), [])
            target.names.update(name for owner in owners for name in _names_in(owner, holder))
            target.is_weak = target.is_weak or any(isinstance_of(each, WEAK) for each in (holder, *owners))
        targets.append(target)
    return targets


def isinstance_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether an object's type is one of these or inherits from one, whatever the object says of its class."""
    return issubclass(type(value), kinds)


def _holders(targets: Sequence[Any]) -> Mapping[int, list[Any]]:
    """Return what refers to each of these objects, of very many only some."""
    held: dict[int, list[Any]] = {id(each): [] for each in targets}
    own = {id(targets), *map(id, held.values())}
    for holder in gc.get_referrers(*targets) if targets else ():
        if id(holder) not in own and type(holder) is not types.FrameType:
            for key in held.keys() & map(id, gc.get_referents(holder)):
                if len(held[key]) < HOLDERS_MAX:
                    held[key].append(holder)
    return held


def _names_in(holder: Any, held: Any) -> Iterator[str]:
    """Yield the names under which an object or a dictionary has another one."""
    if issubclass(type(holder), dict):
        entries = list(dict.items(holder))
    elif issubclass(type(holder), type):
        entries = list(shown_by(holder).items())
    else:
        attributes = attributes_of(holder)
        entries = [*(attributes.items() if type(attributes) is dict else ()), *slots_of(holder)]
    yield from (key for key, value in entries if value is held and type(key) is str)


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute that an object or a class has by itself, or ``UNKNOWN``; no code of its class runs."""
    if issubclass(type(owner), type):
        bases = mro_of(owner)
    else:
        attributes = attributes_of(owner)
        if type(attributes) is dict and name in attributes:
            return attributes[name]
        bases = mro_of(type(owner))
    value = next((shown_by(base)[name] for base in bases if name in shown_by(base)), UNKNOWN)
    if type(value) is not types.MemberDescriptorType:
        return value
    try:
        return UNKNOWN if issubclass(type(owner), type) else value.__get__(owner)
    except AttributeError:  # the slot is empty
        return UNKNOWN
