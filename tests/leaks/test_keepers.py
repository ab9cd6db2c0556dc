"""What keeps a leak is named by the way to it from a module, a class, a fixture or a running thread."""

from __future__ import annotations

import ast
import contextvars
import gc
import itertools
import json
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.leaks.explaining import keepers, paths
from quiesce.leaks.explaining.keepers import HALF_ROUNDS, NOBODY, Keepers
from quiesce.leaks.explaining.paths import no_roots
from quiesce.leaks.owners import Owners

OWNERS: Final = Owners([str(Path(keepers.__file__).parents[1])])
HERE: Final = Path(__file__).parent
PLANTED: Final = {
    node.name: ast.get_docstring(node) or ""
    for node in ast.parse((HERE / "keeping.py").read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith(("keep_", "lose_"))
}

ASKS: Final = """\
import json, keeping
from quiesce.leaks.explaining.keepers import Keepers
from quiesce.leaks.owners import Owners
from quiesce.leaks.explaining.paths import no_roots
from quiesce.leaks.explaining import keepers
from quiesce.leaks.meters.tracing import Tracing

owners = Owners([keepers.__file__.rpartition("/explaining/")[0]])

def who_keeps(name, run):
    tracing = Tracing(owners)
    tracing.start()
    for _ in range(9 if name in ("keep_in_a_chain", "keep_as_a_handler", "lose_a_reference") else 0):
        run()
        tracing.sample()
    frames = [site.frame for site in tracing.leaking_sites()]
    tracing.stop()
    return Keepers(owners, frames, no_roots).watch(run)

print(json.dumps({name: who_keeps(name, run) for name, run in keeping.KEEPING.items()}))
"""


TABLES: dict[str, list[int]] = {"one": [], "other": []}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """Return who keeps what each of the planted functions leaves, found in a process with little else in it."""
    done = subprocess.run([sys.executable, "-c", ASKS], cwd=HERE, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def without_size(line: str) -> str:
    """Leave out how much a container holds by now."""
    if "by turns" in line:
        return line
    return f"{line.partition(',')[0]},{line.rpartition(',')[2]}" if "+" in line else line


@pytest.mark.parametrize(("name", "expected"), PLANTED.items(), ids=PLANTED)
def test_what_keeps_a_leak_is_named(name: str, expected: str, said: dict[str, str]) -> None:
    assert [without_size(line) for line in said[name].splitlines()] == [expected]


@pytest.mark.long
def test_a_running_thread_is_named_by_its_variable() -> None:
    turn, done = threading.Event(), threading.Event()

    def work() -> None:
        mine: list[object] = []
        while turn.wait() and not done.is_set():
            turn.clear()
            mine.append(object())
            ready.release()

    ready = threading.Semaphore(0)
    thread = threading.Thread(target=work, name="worker")
    thread.start()

    def run() -> None:
        turn.set()
        assert ready.acquire(timeout=60)

    try:
        function = "test_a_running_thread_is_named_by_its_variable.<locals>.work"
        function = function if sys.version_info >= (3, 11) else "work"
        assert without_size(Keepers(OWNERS, [], no_roots).watch(run)) == (
            f"local variable 'mine' of {function} in running thread 'worker' (list, +1 a round)"
        )
    finally:
        done.set()
        turn.set()
        thread.join()


@pytest.mark.long
def test_a_context_variable_is_named() -> None:
    trail: contextvars.ContextVar[list[object]] = contextvars.ContextVar("trail")
    token = trail.set([])
    try:
        kept = Keepers(OWNERS, [], no_roots).watch(lambda: trail.get().append(object()))
        assert without_size(kept) == "context variable 'trail' (list, +1 a round)"
    finally:
        trail.reset(token)


@pytest.mark.long
@pytest.mark.parametrize("order", [list, lambda found: list(reversed(found))], ids=["as-found", "reversed"])
def test_a_variable_is_named_by_its_module_and_not_by_a_function(
    monkeypatch: pytest.MonkeyPatch, order: Callable[[Any], list[Any]]
) -> None:
    referrers = paths._referrers
    monkeypatch.setattr(paths, "_referrers", lambda level: order(referrers(level)))
    module = types.ModuleType("cache")
    monkeypatch.setitem(sys.modules, "cache", module)
    exec("SEEN = []\ndef look_up(): SEEN.append(1)", vars(module))
    said = Keepers(OWNERS, [], no_roots).watch(module.look_up)
    assert said == f"cache.SEEN (list, {2 * HALF_ROUNDS} entries, +1 a round)"


@pytest.mark.long
def test_what_replaces_its_entries_keeps_nothing() -> None:
    numbers = itertools.count(100)
    full: dict[int, Any] = dict.fromkeys(range(100))

    def replace() -> None:
        full[next(numbers)] = object()
        del full[next(iter(full))]

    assert Keepers(OWNERS, [], no_roots).watch(replace) == NOBODY


@pytest.mark.long
def test_what_other_code_keeps_long_is_named_by_it() -> None:
    class Fixture:
        def __init__(self) -> None:
            self.value: dict[str, list[Any]] = {"rows": []}

    fixture = Fixture()

    def roots(value: object) -> tuple[str, object]:
        return ("fixture 'database'", fixture.value) if value is fixture else ("", None)

    said = Keepers(OWNERS, [], roots).watch(lambda: fixture.value["rows"].append(1))
    assert said == f"fixture 'database'['rows'] (list, {2 * HALF_ROUNDS} entries, +1 a round)"


def test_what_is_filled_once_is_filled_by_no_turns() -> None:
    """What fills up in one round holds more than turns in all rounds would have added."""
    numbers = itertools.count()

    def fill() -> None:
        if next(numbers) == 1:
            TABLES["one"].extend(range(100))
            TABLES["other"].extend(range(100))

    assert Keepers(OWNERS, [], no_roots).watch(fill) == NOBODY


@pytest.mark.long
def test_objects_of_a_class_that_was_half_collected_are_passed_over() -> None:
    """A class that is its own class is never freed: a collection takes its bases away, and it stays."""

    class Own(type):
        pass

    made = Own("Made", (Own,), {})
    made.__class__ = made  # type: ignore[assignment]
    del made, Own
    gc.collect()
    assert Keepers(OWNERS, [], no_roots).watch(lambda: None) == NOBODY
