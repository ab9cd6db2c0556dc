"""How much each container holds, and what objects refer to: what holds more and more is what keeps a leak.

Sizes are put down by identity, so that no container lives on because it is looked at. The garbage collector does not
track a dictionary of numbers, nor a ``bytearray``; such are found as what tracked objects refer to. The buffer of a
stream in memory has room for more, so its size moves in steps only, and what it holds is asked for.

Not asked for is what a module written in C keeps to itself. CPython 3.12's ``_asyncio`` lists there iterators that are
gone and wait to be used again. Whoever is given one frees it a second time, and the next collection never ends
(``fi_freelist`` in its Modules/_asynciomodule.c).
"""

from __future__ import annotations

import array
import functools
import gc
import io
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress, filterfalse
from operator import not_
from typing import Any, Final, TypeAlias


def referents(objects: Sequence[Any]) -> list[Any]:
    """Return what these objects refer to, some more than once; of a module its dictionary of names."""
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, types.ModuleType)}
    if not kinds:
        return gc.get_referents(*objects)
    are_modules = list(map(kinds.__contains__, map(type, objects)))
    names = [object.__getattribute__(module, "__dict__") for module in compress(objects, are_modules)]
    return [*gc.get_referents(*compress(objects, map(not_, are_modules))), *names]


def held_by_stream(stream: Any) -> int:
    """Return how many bytes or characters an :class:`io.BytesIO` or an :class:`io.StringIO` holds; 0 if it is closed.

    Where it would write next stays as it is, and no code of a subclass runs.
    """
    kind = io.BytesIO if isinstance(stream, io.BytesIO) else io.StringIO
    try:
        return len(kind.getvalue(stream))
    except ValueError:  # closed, or never opened by a subclass
        return 0


Sizes: TypeAlias = dict[int, int]
"""How many entries, or bytes, the object with each identity holds."""

_ENTRIES: Final[Mapping[type, Callable[[Any], int]]] = {
    dict: dict.__len__,
    list: list.__len__,
    set: set.__len__,
    deque: deque.__len__,
    functools._lru_cache_wrapper: lambda cache: int(cache.cache_info().currsize),
}
_BYTES: Final[Mapping[type, Callable[[Any], int]]] = {
    bytearray: bytearray.__len__,
    array.array: lambda numbers: len(numbers) * numbers.itemsize,
    io.BytesIO: held_by_stream,
    io.StringIO: held_by_stream,
}
_NUMBERS_ONLY: Final = frozenset({dict, bytearray, array.array})
"""What the garbage collector may leave alone, as nothing in it can refer back."""

_BUFFERS: Final = (bytearray, array.array)
_PLAIN: Final = frozenset({dict, list, set, deque})
"""Of these the built-in length is what is asked for, and quicker."""

_COUNTS: Final[dict[type, Callable[[Any], int] | None]] = {**_ENTRIES, **_BYTES}


def unit_of(kind: type) -> str:
    """Return what the sizes of this type of container count."""
    return "bytes" if _count_of(kind) in _BYTES.values() else "entries"


def kind_in_words(kind: type) -> str:
    """Return the name of a type of container, as programs write it."""
    return "functools.lru_cache" if kind is functools._lru_cache_wrapper else kind.__name__


def is_bounded(container: Any) -> bool:
    """Whether a container says of itself how much it holds at most."""
    if type(container) is functools._lru_cache_wrapper:
        return bool(container.cache_info().maxsize)
    return type(container) is deque and bool(container.maxlen)


def containers(objects: Sequence[Any]) -> Sequence[Any]:
    """Return the containers among these objects, and those that are not tracked and that one of these refers to."""
    kinds = frozenset(filter(_count_of, set(map(type, objects))))
    found = list(compress(objects, map(kinds.__contains__, map(type, objects))))
    others = {id(each): each for each in untracked(objects, _NUMBERS_ONLY)}
    for each in tuple(others.values()):
        if type(each) is dict:  # which may hold buffers, and is not tracked itself
            others.update((id(value), value) for value in each.values() if type(value) in _BUFFERS)
    found.extend(others.values())
    return found


def untracked(objects: Sequence[Any], kinds: frozenset[type]) -> Iterator[Any]:
    """Yield what these objects refer to that is of these types and not tracked; some more than once."""
    held = referents(objects)
    return filterfalse(gc.is_tracked, compress(held, map(kinds.__contains__, map(type, held))))


def sizes(found: Sequence[Any]) -> Sizes:
    """Return what each of these containers holds."""
    plain = list(compress(found, map(_PLAIN.__contains__, map(type, found))))
    others = compress(found, map(not_, map(_PLAIN.__contains__, map(type, found))))
    return {**dict(zip(map(id, plain), map(len, plain), strict=True)), **{id(each): size_of(each) for each in others}}


def size_of(container: Any) -> int:
    """Return how many entries, or bytes, a container holds."""
    count = _count_of(type(container))
    return 0 if count is None else count(container)


def _count_of(kind: type) -> Callable[[Any], int] | None:
    if kind not in _COUNTS:
        bases = (base for base in (type.__dict__["__mro__"].__get__(kind) or ()) if base in _ENTRIES or base in _BYTES)
        _COUNTS[kind] = next((_COUNTS[base] for base in bases), None)
    return _COUNTS[kind]
