"""How one object refers to another, in words."""

from __future__ import annotations

import contextvars
import functools
import signal
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quiesce.leaks.explaining.paths import (
    KEY_LENGTH_MAX,
    attributes_of,
    context_variables,
    is_namespace_of,
    signal_handlers,
    variables_of_threads,
    with_link,
)


class Thing:
    """What is held."""

    def method(self) -> None: ...


class Slotted:
    __slots__ = ("empty", "thing")

    empty: Thing
    thing: Thing


class Local(threading.local):
    thing: Thing


HELD = Thing()


def closure() -> Callable[[], object]:
    other, kept = Thing(), HELD
    return lambda: (other, kept)


def default(first: int, other: object = 0, kept: object = HELD) -> None: ...


def suspended() -> Iterator[None]:
    kept = HELD
    yield
    assert kept


@types.coroutine
def once() -> Iterator[None]:
    yield


async def waiting() -> None:
    kept = HELD
    await once()
    assert kept


async def streaming() -> Any:
    kept = HELD
    yield kept
    assert kept


def linked(holder: object, held: object = HELD, owner: object = None) -> str:
    return with_link("it", holder, held, owner)


def instance() -> Thing:
    made = Thing()
    made.other, made.thing = Thing(), HELD  # type: ignore[attr-defined]
    return made


def test_attributes() -> None:
    made = instance()
    assert linked(made) == "it.thing"
    assert linked(made, made.__dict__) == "it", "the dictionary of attributes has no name"
    assert linked(made.__dict__, HELD, made) == "it.thing"
    assert linked(made, Thing()) == "it", "nobody knows how"
    slotted = Slotted()
    slotted.thing = HELD
    assert linked(slotted) == "it.thing"


@pytest.mark.parametrize("name", ["__traceback__", "__context__", "__cause__"])
def test_links_of_an_exception(name: str) -> None:
    error, other = ValueError(), ValueError()
    held: Any = other
    if name == "__traceback__":
        try:
            raise other
        except ValueError as raised:
            held = raised.__traceback__
    setattr(error, name, held)
    assert linked(error, held) == f"it.{name}"


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("key", "['key']"),
        (b"key", "[b'key']"),
        (7, "[7]"),
        (1.5, "[1.5]"),
        (True, "[True]"),
        (None, "[None]"),
        ((1, 2), "[…]"),
        ("k" * (KEY_LENGTH_MAX - 2), f"['{'k' * (KEY_LENGTH_MAX - 2)}']"),
        ("k" * (KEY_LENGTH_MAX - 1), "[…]"),
    ],
)
def test_keys(key: object, shown: str) -> None:
    assert linked({"other": Thing(), key: HELD}) == f"it{shown}"
    assert linked(OrderedDict({key: HELD})) == f"it{shown}"
    assert linked({"other": Thing()}) == "it[…]", "it is gone by now"


@pytest.mark.parametrize("holder", [[HELD], (HELD,), deque([HELD])])
def test_places_in_a_row_have_no_names(holder: object) -> None:
    assert linked(holder) == "it[…]"


def test_what_adds_nothing_is_left_out() -> None:
    cell = (closure().__closure__ or ())[0]
    for holder in (cell, default, closure(), Thing, types, HELD.method):
        assert linked(holder) in ("it", "it.thing")
    assert linked(Thing) == linked(types) == linked(default) == "it"


def test_variables_of_a_closure_and_defaults() -> None:
    function: Any = closure()
    cells = function.__closure__
    held = next(cell for cell in cells if cell.cell_contents is HELD)
    assert linked(cells, held, function) == "closure variable 'kept' of it"
    assert linked(cells, Thing(), function) == "closure variable '…' of it"
    assert linked(default.__defaults__, HELD, default) == "default of argument 'kept' of it"
    assert linked(default.__defaults__, 0, default) == "default of argument 'other' of it"


def test_an_argument_of_a_partial() -> None:
    assert linked(functools.partial(print, HELD)) == "an argument of it"


def test_variables_of_what_is_suspended() -> None:
    generator, coroutine, stream = suspended(), waiting(), streaming()
    next(generator)
    coroutine.send(None)
    first = anext(stream)
    with pytest.raises(StopIteration):
        first.send(None)
    for holder in (generator, coroutine, stream):
        assert linked(holder) == "local variable 'kept' of it"
        assert linked(holder, Thing()) == "a value of it"
    frame: Any = generator.gi_frame  # type: ignore[attr-defined]
    assert linked(frame) == "local variable 'kept' of suspended in it"
    generator.close()  # type: ignore[attr-defined]
    coroutine.close()
    assert linked(generator) == "a value of it", "it has ended"


def test_variables_of_a_thread_of_its_own() -> None:
    local = Local()
    local.thing = HELD
    attributes = local.__dict__
    assert linked(local, attributes) == "it"
    assert linked(attributes, HELD, local) == "it.thing"
    by_thread = {"a": attributes}
    assert linked(by_thread, attributes, local) == "it"


def test_whose_namespace_a_dictionary_is() -> None:
    made = instance()
    assert is_namespace_of(made.__dict__, made)
    assert is_namespace_of({}, Thing), "that of a class is read through a proxy"
    assert is_namespace_of(vars(types), types)
    assert not is_namespace_of({}, made)
    assert not is_namespace_of({}, None)
    assert not is_namespace_of({}, {})
    assert not is_namespace_of(OrderedDict(), Thing)
    assert attributes_of(7) is None
    assert attributes_of(Slotted()) is None


def test_variables_of_running_threads() -> None:
    event, begun = threading.Event(), threading.Event()

    def work() -> None:
        kept = HELD
        begun.set()
        event.wait()
        assert kept

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    begun.wait()
    try:
        found = [text for text, value in variables_of_threads() if value is HELD]
        mine = [text for text, value in variables_of_threads() if value is event and "running threads" in text]
    finally:
        event.set()
        thread.join()
    name = test_variables_of_running_threads.__qualname__
    assert found == [f"local variable 'kept' of {name}.<locals>.work in running thread 'worker'"]
    assert mine == []


def test_handlers_and_context_variables() -> None:
    def handler(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        assert [text for text, value in signal_handlers() if value is handler] == ["handler of SIGUSR1"]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not [text for text, value in signal_handlers() if not callable(value)]
    variable: contextvars.ContextVar[object] = contextvars.ContextVar("request")
    token = variable.set(HELD)
    assert [text for text, value in context_variables() if value is HELD] == ["context variable 'request'"]
    variable.reset(token)
