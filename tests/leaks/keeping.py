"""Code that keeps something after each call: the first line of a docstring says what keeps it, and how."""

from __future__ import annotations

import array
import atexit
import ctypes
import functools
import io
import itertools
import signal
import sys
import threading
import types
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

NUMBERS: Final = itertools.count()

BY_KEY: dict[Any, Any] = {}
ITEMS: list[Any] = []
SEEN: set[int] = set()
QUEUE: deque[Any] = deque()
BUFFER = bytearray()
FLOATS = array.array("d")
STREAM = io.StringIO()
NESTED: dict[str, Any] = {"open": {"sockets": []}, "buffers": bytearray()}
BY_WEAK_KEY: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
BY_WEAK_VALUE: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
GROUPS: defaultdict[int, list[Any]] = defaultdict(list, {3: []})
SHARDS: dict[int, list[Any]] = {number: [] for number in range(32)}
LOCAL = threading.local()
LOCAL.items = []


class Thing:
    before: Any = None


class Last:
    thing: Thing | None = None


class Client:
    registry: ClassVar[dict[int, Any]] = {}

    def __init__(self) -> None:
        self.seen: list[Any] = []


class Slotted:
    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Any] = []


CLIENT = Client()
SLOTTED = Slotted()


def keep_by_key() -> None:
    """keeping.BY_KEY (dict, +1 a round)"""
    BY_KEY[next(NUMBERS)] = Thing()


def keep_numbers_by_key() -> None:
    """keeping.BY_KEY (dict, +1 a round)"""
    BY_KEY[next(NUMBERS)] = None


def keep_in_a_list() -> None:
    """keeping.ITEMS (list, +1 a round)"""
    ITEMS.append(Thing())


def keep_numbers_in_a_set() -> None:
    """keeping.SEEN (set, +1 a round)"""
    SEEN.add(next(NUMBERS))


def keep_in_a_deque() -> None:
    """keeping.QUEUE (deque, +2 a round)"""
    QUEUE.extend("ab")


def keep_bytes() -> None:
    """keeping.BUFFER (bytearray, +16 a round)"""
    BUFFER.extend(bytes(16))


def keep_floats() -> None:
    """keeping.FLOATS (array, +8 a round)"""
    FLOATS.append(1.0)


def keep_below() -> None:
    """keeping.NESTED['open']['sockets'] (list, +1 a round)"""
    NESTED["open"]["sockets"].append(Thing())


def keep_bytes_below() -> None:
    """keeping.NESTED['buffers'] (bytearray, +8 a round)"""
    NESTED["buffers"].extend(bytes(8))


def keep_in_a_stream() -> None:
    """keeping.STREAM (StringIO, +6 a round)"""
    STREAM.write("a line")


def keep_in_a_group() -> None:
    """keeping.GROUPS[3] (list, +1 a round)"""
    GROUPS[3].append(1)


def keep_in_a_class() -> None:
    """keeping.Client.registry (dict, +1 a round)"""
    Client.registry[next(NUMBERS)] = Thing()


def keep_in_an_instance() -> None:
    """keeping.CLIENT.seen (list, +1 a round)"""
    CLIENT.seen.append(Thing())


def keep_in_a_slot() -> None:
    """keeping.SLOTTED.items (list, +1 a round)"""
    SLOTTED.items.append(Thing())


def keep_as_attributes() -> None:
    """keeping.Client (attributes, +1 a round)"""
    setattr(Client, f"attribute_{next(NUMBERS)}", Thing())


def keep_as_variables() -> None:
    """keeping (attributes, +1 a round)"""
    globals()[f"variable_{next(NUMBERS)}"] = Thing()


def keep_by_a_weak_key() -> None:
    """keeping.BY_WEAK_KEY (WeakKeyDictionary, +1 a round)"""
    thing = Thing()
    BY_WEAK_KEY[thing] = [thing]


def keep_beside_a_weak_value() -> None:
    """keeping.ITEMS (list, +1 a round)"""
    ITEMS.append(Thing())
    BY_WEAK_VALUE[next(NUMBERS)] = ITEMS[-1]


def keep_in_a_chain() -> None:
    """keeping.Last.thing (1 new objects a round, mostly of type Thing)"""
    thing = Thing()
    thing.before, Last.thing = Last.thing, thing


def keep_in_a_thread_local() -> None:
    """keeping.LOCAL['items'] (list, +1 a round)"""
    LOCAL.items.append(Thing())


@functools.cache
def remembered(_number: int) -> Thing:
    return Thing()


def keep_in_a_cache() -> None:
    """keeping.remembered (functools.lru_cache, +1 a round)"""
    remembered(next(NUMBERS))


@functools.lru_cache(maxsize=4096)
def remembered_for_a_while(_number: int) -> list[Thing]:
    return [Thing() for _ in range(9)]


RECENT: deque[Any] = deque(maxlen=4096)


def keep_beside_what_is_not_full_yet() -> None:
    """keeping.ITEMS (list, +1 a round)"""
    ITEMS.append(remembered_for_a_while(next(NUMBERS)))
    RECENT.extend([Thing(), Thing()])


def with_closure() -> Callable[[], None]:
    cache: dict[int, Thing] = {}

    def fetch() -> None:
        cache[next(NUMBERS)] = Thing()

    return fetch


fetching = with_closure()


def keep_in_a_closure() -> None:
    """closure variable 'cache' of keeping.fetching (dict, +1 a round)"""
    fetching()


def keep_in_a_default(into: list[Thing] = []) -> None:  # noqa: B006 - what is kept
    """default of argument 'into' of keeping.keep_in_a_default (list, +1 a round)"""
    into.append(Thing())


def collecting() -> Iterator[None]:
    kept = []
    while True:
        kept.append(Thing())
        yield


COLLECTOR = collecting()
next(COLLECTOR)


def keep_in_a_generator() -> None:
    """local variable 'kept' of keeping.COLLECTOR (list, +1 a round)"""
    next(COLLECTOR)


def keep_an_error() -> None:
    """keeping.ITEMS (list, +1 a round)"""
    try:
        raise ValueError(Thing())
    except ValueError as error:
        ITEMS.append(error)


def keep_a_module() -> None:
    """sys.modules (dict, +1 a round)"""
    sys.modules[f"made_{next(NUMBERS)}"] = types.ModuleType("made")


def keep_at_exit() -> None:
    """atexit (8 functions, +1 a round)"""
    atexit.register(str, Thing())


def handle(earlier: Any, thing: Thing) -> Callable[[int, Any], None]:
    def handle_next(_number: int, _frame: Any) -> None:
        assert earlier is not thing

    return handle_next


def keep_as_a_handler() -> None:
    """handler of SIGUSR1 (5 new objects a round, mostly of type cell)"""
    signal.signal(signal.SIGUSR1, handle(signal.getsignal(signal.SIGUSR1), Thing()))


class Text:
    written = ""


def keep_a_longer_text() -> None:
    """keeping.Text.written (str, +3 a round)"""
    Text.written += "abc"


def lose_a_reference() -> None:
    """no Python object: lost references or native memory"""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(Thing()))


def keep_by_turns() -> None:
    """keeping.SHARDS (8 containers in it by turns, +1 a round)"""
    SHARDS[next(NUMBERS) % 32].append(bytes(20))


KEEPING: Final = {name: each for name, each in list(globals().items()) if name.startswith(("keep_", "lose_"))}
