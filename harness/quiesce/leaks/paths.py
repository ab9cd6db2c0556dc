"""The way to an object from something that lives for as long as the program: ``mylib._CACHE['a'].entries``."""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from quiesce.leaks.contents import is_bounded, untracked
from quiesce.leaks.links import context_variables, is_namespace_of, signal_handlers, variables_of_threads, with_link
from quiesce.leaks.owners import DEPENDENCY, LIBRARY, RUNNER, TESTED, Owners
from quiesce.leaks.referents import referents

DEPTH_MAX: Final = 24
"""How many references there may be between a root and an object."""

WIDTH_MAX: Final = 2_000
"""How many objects are looked at for each of these references."""

_RANKS: Final = {TESTED: 0, DEPENDENCY: 1, LIBRARY: 2, RUNNER: 3}

_NAMED: Final = (type, types.FunctionType, functools._lru_cache_wrapper)
"""What knows in which module it is, and under which name."""

Roots: TypeAlias = Callable[[object], tuple[str, object]]
"""Names what else lives for long, such as a fixture of pytest, and returns with it what the name stands for. For all
that is none the name is empty."""

WEAK: Final = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)


def no_roots(_: object) -> tuple[str, object]:
    """Know nothing else that lives for long."""
    return "", None


@dataclass(frozen=True, slots=True)
class Path:
    """The way to an object, in words. ``owner`` says whose the root is.

    ``kind`` is what the object is to what refers to it, where its type does not say it: the dictionary of a
    ``WeakKeyDictionary``, or that of the attributes of an instance. ``is_bounded`` says that it holds so much at most.
    """

    text: str
    owner: str = TESTED
    kind: str = ""
    is_bounded: bool = False

    @property
    def is_weak(self) -> bool:
        """Whether the object refers to what is in it weakly."""
        return self.kind.startswith("Weak")


class _Search:
    """One search: what was met, and which of it each of these refers to."""

    def __init__(self, held: Sequence[Any]) -> None:
        self.targets = frozenset(map(id, held))
        self.level = list(held)
        self.met = {id(each): each for each in held}
        self.refers_to: dict[int, int] = {}

    def widen(self) -> None:
        """Go on to what refers to the objects of this level."""
        level = {id(each): each for each in self.level}
        own = {id(self.level), id(self.met), id(level), *map(id, _frames_of_this_thread())}
        following: list[Any] = []
        for holder in _referrers(self.level):
            if id(holder) in own or id(holder) in self.met:
                continue
            held = next((id(each) for each in referents([holder]) if id(each) in level), None)
            if held is not None:
                self.met[id(holder)] = holder
                self.refers_to[id(holder)] = held
                following.append(holder)
        self.level = following[:WIDTH_MAX]

    def path_from(self, start: Path, root: Any) -> Path:
        """Return the way to the first target that the root leads to; ``start`` is that to the root."""
        text, owner, holder, kind = start.text, None, root, ""
        while id(holder) not in self.targets:
            held = self.met[self.refers_to[id(holder)]]
            text = with_link(text, holder, held, owner)
            kind = next((type(each).__name__ for each in (holder, owner) if type(each) in WEAK), "")
            owner, holder = holder, held
        if type(holder) is dict and isinstance(owner, functools._lru_cache_wrapper):
            return Path(text, start.owner, "functools.lru_cache", is_bounded(owner))
        if kind:
            return Path(text.removesuffix(".data"), start.owner, kind)
        kind = "attributes" if is_namespace_of(holder, owner) else ""
        return Path(text, start.owner, kind, is_bounded(holder))


class Paths:
    """Finds them, from what the garbage collector knows. Nothing may be left out of collections meanwhile."""

    def __init__(self, owners: Owners, roots: Roots) -> None:
        self._owners = owners
        self._roots = roots

    def find(self, held: Sequence[Any]) -> Path | None:
        """Return the shortest way to any of these objects, or None if no Python object refers to one for good."""
        search = _Search(held)
        for _ in range(DEPTH_MAX):
            found = None
            for each in search.level:
                root, start = self._root(each)
                if root is None or id(start) not in search.met:
                    continue
                if found is None or _rank(root, start) < _rank(*found):
                    found = root, start
            if found is not None:
                return search.path_from(*found)
            search.widen()
            if not search.level:
                break
        return self._of_a_variable(search)

    def _root(self, each: Any) -> tuple[Path | None, Any]:
        """Return the name of what lives as long as the program and what it stands for; None for all else."""
        kind = type(each)
        if issubclass(kind, types.ModuleType):
            name = str(each.__name__)
            return (Path(name, self.owner_of(name)) if sys.modules.get(name) is each else None), each
        if issubclass(kind, _NAMED):
            return self._named(each), each
        if issubclass(kind, threading.Thread):
            return (Path(f"running thread '{each.name}'") if each.is_alive() else None), each
        name, value = self._roots(each)
        return (Path(name) if name else None), value

    def _named(self, each: Any) -> Path | None:
        module, name = getattr(each, "__module__", None), getattr(each, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str):
            return None
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = vars(found).get(part) if isinstance(found, type | types.ModuleType) else None
        return Path(f"{module}.{name}", self.owner_of(module)) if found is each else None

    def owner_of(self, module: str) -> str:
        """Return whose code a module holds."""
        file = getattr(sys.modules.get(module), "__file__", None)
        if isinstance(file, str):
            return self._owners.kind(file)
        return LIBRARY if module.partition(".")[0] in sys.stdlib_module_names else TESTED

    def _of_a_variable(self, search: _Search) -> Path | None:
        """Return the way from a context variable of this thread, a handler of a signal, or a variable of a thread."""
        for text, value in itertools.chain(context_variables(), signal_handlers(), variables_of_threads()):
            if id(value) in search.met:
                return Path(search.path_from(Path(text), value).text)
        return None


def _rank(root: Path, start: Any) -> tuple[int, bool]:
    """Order roots at one distance: a variable belongs to its module, and each function of that leads there as well."""
    return _RANKS[root.owner], not issubclass(type(start), types.ModuleType)


def _frames_of_this_thread() -> list[types.FrameType]:
    frames = []
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _referrers(level: Sequence[Any]) -> Sequence[Any]:
    """Return what refers to one of these objects; what is not tracked is looked at where nothing else does."""
    found = gc.get_referrers(*level)
    if all(isinstance(each, types.FrameType | list) for each in found):
        wanted = frozenset(map(id, level))
        for each in untracked(gc.get_objects(), frozenset({dict, tuple})):
            if not wanted.isdisjoint(map(id, referents([each]))):
                found.append(each)
    return found
