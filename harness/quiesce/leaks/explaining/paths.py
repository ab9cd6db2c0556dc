"""The way to an object from something that lives for as long as the program: ``mylib._CACHE['a'].entries``.

How one object refers to another is told in words: ``.attribute``, ``['key']``, a variable of a closure or a thread.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import itertools
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from quiesce.leaks.meters.contents import is_bounded, referents, untracked
from quiesce.leaks.owners import DEPENDENCY, LIBRARY, RUNNER, TESTED, Owners

KEY_LENGTH_MAX: Final = 40

_PLAIN: Final = (str, bytes, int, float, bool, type(None))
"""Types of keys that are shown: the text of others is what tested code says, which may be anything."""

_TRANSPARENT: Final = (types.CellType, types.FunctionType, types.MethodType, type, types.ModuleType)
"""What adds nothing to the name of what it refers to."""

_SUSPENDED: Final[dict[type, str]] = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}

_ERROR_LINKS: Final = ("__traceback__", "__context__", "__cause__")


def with_link(text: str, holder: Any, held: Any, owner: Any) -> str:
    """Return the name of what ``holder`` refers to. ``text`` names the holder, and ``owner`` refers to the holder."""
    kind = type(holder)
    if kind is tuple and type(owner) is types.FunctionType:
        return f"{_variable_of(owner, holder, held)} of {text}"
    if kind in _TRANSPARENT or issubclass(kind, _TRANSPARENT):
        return text
    if issubclass(type(owner), threading.local) or (issubclass(kind, threading.local) and type(held) is dict):
        return text if type(held) is dict else f"{text}{_key_of(holder, held, is_namespace=True)}"
    if issubclass(kind, dict):
        return text + _key_of(holder, held, is_namespace=is_namespace_of(holder, owner))
    if issubclass(kind, list | tuple | deque):
        return f"{text}[…]"
    if issubclass(kind, functools.partial):
        return f"an argument of {text}"
    if kind in _SUSPENDED:
        return f"{_local_of(getattr(holder, _SUSPENDED[kind]), held)} of {text}"
    if kind is types.FrameType:
        return f"{_local_of(holder, held)} of {holder.f_code.co_qualname} in {text}"
    return text + _attribute_of(holder, held)


def is_namespace_of(namespace: Any, owner: Any) -> bool:
    """Whether a dictionary holds the attributes of a module, a class or an instance."""
    if type(namespace) is not dict or owner is None or type(owner) is dict:
        return False
    return issubclass(type(owner), type) or attributes_of(owner) is namespace


def attributes_of(owner: Any) -> Any:
    """Return the dictionary of an instance's attributes, if it has one. No code of its class runs."""
    try:
        return object.__getattribute__(owner, "__dict__")
    except (AttributeError, TypeError):
        return None


def mro_of(kind: type) -> tuple[type, ...]:
    """Return the classes of which a class has methods, without asking its metaclass."""
    return type.__dict__["__mro__"].__get__(kind) or ()


def shown_by(kind: type) -> Mapping[str, Any]:
    """Return what a class itself defines, without asking its metaclass."""
    shown: Mapping[str, Any] = type.__dict__["__dict__"].__get__(kind)
    return shown


def _variable_of(function: types.FunctionType, values: Any, held: Any) -> str:
    """Return which variable of a function's closure, or which default of an argument, one of these values is."""
    code = function.__code__
    if values is function.__closure__:
        names, role = code.co_freevars, "closure variable"
    else:
        arguments = code.co_varnames[: code.co_argcount]
        names, role = arguments[len(arguments) - len(values) :], "default of argument"
    name = next((name for name, value in zip(names, values, strict=False) if value is held), "…")
    return f"{role} '{name}'"


def _key_of(holder: dict[Any, Any], held: Any, *, is_namespace: bool) -> str:
    for key, value in list(dict.items(holder)):
        if value is held:
            return f".{key}" if is_namespace and type(key) is str else f"[{_key_text(key)}]"
    return "[…]"


def _key_text(key: Any) -> str:
    text = repr(key) if type(key) in _PLAIN else "…"
    return text if len(text) <= KEY_LENGTH_MAX else "…"


def _attribute_of(holder: Any, held: Any) -> str:
    attributes = attributes_of(holder)
    if attributes is held:
        return ""
    if isinstance(attributes, dict):
        for name, value in list(attributes.items()):
            if value is held:
                return f".{name}"
    return next((f".{name}" for name, value in slots_of(holder) if value is held), "")


def slots_of(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield the slots of an object that hold something, with their names; of an error also what it is linked to."""
    if isinstance(holder, BaseException):
        yield from ((name, getattr(holder, name)) for name in _ERROR_LINKS)
    for base in mro_of(type(holder)):
        for name, slot in list(shown_by(base).items()):
            if type(slot) is types.MemberDescriptorType:
                try:
                    yield name, slot.__get__(holder)
                except AttributeError:
                    continue  # an empty slot


def _local_of(frame: Any, held: Any) -> str:
    variables = {} if frame is None else frame.f_locals
    name = next((name for name, value in variables.items() if value is held), "")
    return f"local variable '{name}'" if name else "a value"


def variables_of_threads() -> Iterator[tuple[str, Any]]:
    """Yield the local variables of the other threads' functions, each with words that say whose it is."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, top in sys._current_frames().items():
        frame: types.FrameType | None = None if ident == threading.get_ident() else top
        thread = names.get(ident, str(ident))
        while frame is not None:
            for name, value in frame.f_locals.items():
                yield f"local variable '{name}' of {frame.f_code.co_qualname} in running thread '{thread}'", value
            frame = frame.f_back


def signal_handlers() -> Iterator[tuple[str, Any]]:
    """Yield the functions that handle signals, which the garbage collector does not lead back to."""
    module: Any = sys.modules.get("signal")
    for number in () if module is None else module.valid_signals():
        handler = module.getsignal(number)
        if callable(handler):
            yield f"handler of {getattr(number, 'name', f'signal {number}')}", handler


def context_variables() -> Iterator[tuple[str, Any]]:
    """Yield the values of this thread's context variables, which the garbage collector does not lead back to."""
    for variable, value in contextvars.copy_context().items():
        yield f"context variable '{variable.name}'", value


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
