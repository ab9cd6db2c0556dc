"""The bound of a container is read from the code that ran: its number, its line, and nothing from other code."""

from __future__ import annotations

import fnmatch
import importlib.util
import itertools
import linecache
import queue
import re
import sys
import textwrap
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.leaks import emptied_code, guarded_code, unbounded_code

from quiesce.leaks.explaining.bounds import Bound, BoundKind, bounds_of
from quiesce.leaks.explaining.ran_code import CallWatch

HERE: Final = "# here"
NONE, MEMO, REMOVES, EXPIRES, GUARDED, DECLARED = BoundKind
CASES: Final = unbounded_code.CASES | emptied_code.CASES | guarded_code.CASES


@pytest.fixture
def module_of(tmp_path: Path) -> Iterator[Callable[[str], types.ModuleType]]:
    """Return a function that makes a module of a source."""
    (tmp_path / "bounds_limits.py").write_text("LIMIT = 99\n", encoding="utf-8")
    sys.path.insert(0, str(tmp_path))

    def make(source: str) -> types.ModuleType:
        path = tmp_path / "bounds_subject.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield make
    sys.path.remove(str(tmp_path))
    for name in ("bounds_subject", "bounds_limits"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_read(name: str, module_of: Callable[[str], types.ModuleType]) -> None:
    kind, most, source = CASES[name]
    module = module_of(source)
    (bound,) = bounds_of([module.X], module.run)
    assert (bound.kind, bound.most) == (kind, most), bound
    lines = [at for at, line in enumerate(textwrap.dedent(source).splitlines(), 1) if line.endswith(HERE)]
    if lines:
        assert bound.place == f"{module.__file__}:{lines[0]}"
    if kind is NONE:
        assert bound == Bound()


def _bound(run: Callable[[], object], container: object) -> Bound:
    def run_round() -> None:
        run()

    (bound,) = bounds_of([container], run_round)
    return bound


def test_a_queue_in_the_standard_library_is_bounded_by_its_size() -> None:
    bounded: queue.Queue[int] = queue.Queue(maxsize=30)
    bound = _bound(lambda: bounded.put(1), bounded.queue)
    assert (bound.kind, bound.most) == (DECLARED, 30)
    endless: queue.Queue[int] = queue.Queue()
    assert _bound(lambda: endless.put(1), endless.queue) == Bound()


def test_caches_of_the_standard_library_say_their_bounds() -> None:
    numbers = itertools.count()
    compiled = _bound(lambda: re.compile(f"bound{next(numbers)}"), vars(re)["_cache"])
    assert (compiled.kind, compiled.most) == (GUARDED, 512)
    assert compiled.place.startswith(f"{re.compile.__code__.co_filename}:")
    matched = _bound(lambda: fnmatch.fnmatch("a", f"b{next(numbers)}"), vars(fnmatch)["_compile_pattern"])
    assert matched.kind is DECLARED
    assert _bound(lambda: linecache.getlines(__file__), linecache.cache).kind is MEMO


def test_several_containers_are_read_at_once() -> None:
    bounded: queue.Queue[int] = queue.Queue(maxsize=30)
    kept: list[int] = []

    def run() -> None:
        bounded.put(1)
        kept.append(1)

    first, second = bounds_of([bounded.queue, kept], run)
    assert (first.kind, second.kind) == (DECLARED, NONE)


class _Guarded:
    kept: Final[list[int]] = []

    @classmethod
    def put(cls) -> None:
        if len(cls.kept) < 20:
            cls.kept.append(1)


def test_a_number_that_was_passed_is_no_bound() -> None:
    assert _bound(_Guarded.put, _Guarded.kept).most == 20
    _Guarded.kept.extend(range(20))
    try:
        assert _bound(_Guarded.put, _Guarded.kept) == Bound()
    finally:
        _Guarded.kept.clear()


@pytest.mark.parametrize("is_seen", [True, False])
def test_anything_may_remove_where_nobody_sees_what_runs(monkeypatch: pytest.MonkeyPatch, is_seen: bool) -> None:
    monkeypatch.setattr(CallWatch, "run", lambda *_: is_seen)
    assert _bound(_Guarded.put, _Guarded.kept).kind is (NONE if is_seen else REMOVES)


def test_code_of_other_threads_ran_too() -> None:
    def run() -> None:
        thread = threading.Thread(target=_Guarded.put)
        thread.start()
        thread.join()

    assert _bound(run, _Guarded.kept).most == 20
    _Guarded.kept.clear()


def test_what_runs_next_is_not_shown() -> None:
    seen: list[str] = []
    assert CallWatch(lambda frame: seen.append(frame.f_code.co_name)).run(_nothing)
    _Guarded.put()
    assert seen.count("_nothing") == 1
    assert "put" not in seen
    _Guarded.kept.clear()


def _nothing() -> None:
    pass


def test_a_generator_is_shown_when_it_ends() -> None:
    seen: list[str] = []

    def numbers() -> Iterator[int]:
        yield 1
        yield 2

    def run() -> None:
        list(numbers())

    assert CallWatch(lambda frame: seen.append(frame.f_code.co_name)).run(run)
    assert seen.count("numbers") == 1


def test_a_round_that_fails_leaves_no_profiler_behind() -> None:
    def fail() -> None:
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            bounds_of([], fail)
    assert sys.getprofile() is None
    assert CallWatch(_ignore).run(_nothing)


def _ignore(_: types.FrameType) -> None:
    pass


def test_an_error_of_the_reading_is_raised_after_the_round() -> None:
    ended: list[str] = []

    def show(_: types.FrameType) -> None:
        raise AttributeError

    def run() -> None:
        _nothing()
        ended.append("the round")

    with pytest.raises(AttributeError):
        CallWatch(show).run(run)
    assert ended == ["the round"]


def test_code_as_deep_as_it_can_be_is_not_disturbed() -> None:
    def deeper(depth: int) -> int:
        try:
            return deeper(depth + 1)
        except RecursionError:
            return depth

    def show(frame: types.FrameType) -> None:
        if frame.f_code.co_name == "deeper":
            raise RecursionError

    assert CallWatch(show).run(lambda: None if deeper(0) > 10 else pytest.fail("disturbed"))


def test_a_profiler_of_the_program_stays() -> None:
    seen: list[str] = []

    def profiler(frame: types.FrameType, event: str, _: object) -> None:
        seen.append(frame.f_code.co_name)

    sys.setprofile(profiler)
    try:
        is_seen = CallWatch(_ignore).run(_Guarded.put)
        after = sys.getprofile()
    finally:
        sys.setprofile(None)
        _Guarded.kept.clear()
    assert after is profiler
    assert "put" in seen
    assert is_seen == (sys.version_info >= (3, 12))


class _Odd:
    """Fails when anything is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __bool__(self) -> bool:
        raise RuntimeError


class _OddList(list[int]):
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError

    def __iter__(self) -> Any:
        raise RuntimeError


class _Asks:
    """Its properties say that they were asked."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self.asked = 0

    @property
    def limit(self) -> int:
        self.asked += 1
        return 10

    def put(self) -> None:
        if self is None and len(self.items) < self.limit:
            self.items.append(1)


_ODD: Final[dict[str, Callable[[], object]]] = {
    "fails": _Odd,
    "a list": _OddList,
    "a number": lambda: 1,
    "None": lambda: None,
    "a class": lambda: type,
    "a class of its own": lambda: _Odd,
    "a namespace": types.SimpleNamespace,
    "a module": lambda: types.ModuleType("odd"),
    "a dictionary": lambda: {_Odd.__name__: 1},
    "an iterator": lambda: iter([]),
}


@pytest.mark.parametrize("name", _ODD)
def test_odd_objects_have_no_bound_and_are_not_asked(name: str) -> None:
    odd = _ODD[name]()
    named = {"odd": odd}

    def run(given: object) -> object:
        return odd, given, vars(sys.modules[__name__]).get("odd")

    for each in (odd, [odd], named):
        assert _bound(lambda each=each: run(each), each) == Bound()  # type: ignore[misc]


def test_no_property_is_asked() -> None:
    asks = _Asks()
    bound = _bound(asks.put, asks.items)
    assert (bound.kind, bound.most) == (GUARDED, None)
    assert asks.asked == 0


def test_a_set_of_weak_references_lets_go() -> None:
    kept: Any = weakref.WeakSet()
    assert _bound(lambda: kept.add(_Guarded), kept.data).kind is REMOVES


def test_code_without_a_source_is_read_by_its_names() -> None:
    names: dict[str, Any] = {"__name__": "made"}
    made = "KEPT = [1]\nOTHER = [1]\ndef put():\n    KEPT.append(1)\n    KEPT.pop()\ndef fill(): OTHER.append(1)"
    exec(made, names)
    sys.modules["made"] = types.ModuleType("made")
    sys.modules["made"].__dict__.update(names)
    module = vars(sys.modules["made"])
    exec(made, module)
    try:
        assert _bound(module["put"], module["KEPT"]) == Bound(REMOVES, None, "<string>:3")
        assert _bound(module["fill"], module["OTHER"]) == Bound()
    finally:
        del sys.modules["made"]
