from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest

from quiesce.backends.command import CommandBackend
from quiesce.backends.registry import (
    GROUP,
    Lack,
    Unusable,
    Usable,
    backend_names,
    load_backend,
    probe_backend,
    probe_unnamed,
)
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, Context, Description, DeviceProfile
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.outcomes import Allocated, Done


class Fake:
    def __init__(self, trouble: Exception | SystemExit | None = None) -> None:
        self.trouble = trouble

    def describe(self) -> Description:
        if self.trouble is not None:
            raise self.trouble
        return Description("fake", "3", frozenset())

    def open(self, profile: DeviceProfile) -> Context:
        raise NotImplementedError


class Compiled(Fake):
    """A backend that compiles something first; ``state`` is whether it has, or why it can't tell."""

    def __init__(self, state: bool | Exception) -> None:
        super().__init__()
        self.state = state

    def is_compiled(self) -> bool:
        if isinstance(self.state, Exception):
            raise self.state
        return self.state


def unavailable() -> Backend:
    raise BackendUnavailable("lacking", "no device", "plug one in")


def crashing() -> Backend:
    raise ZeroDivisionError("boom")


def leaving() -> Backend:
    sys.exit(0)


FACTORIES: dict[str, Callable[[], object]] = {
    "good": Fake,
    "integer": lambda: 7,
    "lacking": unavailable,
    "crashing": crashing,
    "leaving": leaving,
    "quitting": lambda: Fake(SystemExit(7)),
    "mute": lambda: Fake(BackendUnavailable("mute", "no driver", "install one")),
    "rude": lambda: Fake(RuntimeError("oops")),
    "compiled": lambda: Compiled(True),
    "uncompiled": lambda: Compiled(False),
    "unknowing": lambda: Compiled(BackendUnavailable("unknowing", "no compiler", "install one")),
}


@pytest.fixture(autouse=True)
def entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("quiesce_test_factories")
    for name, factory in FACTORIES.items():
        setattr(module, name, factory)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    points = [EntryPoint(name, f"{module.__name__}:{name}", GROUP) for name in FACTORIES]
    points += [
        EntryPoint("good", f"{module.__name__}:good", GROUP),
        EntryPoint("nowhere", "no_such_module_at_all:backend", GROUP),
        EntryPoint("nameless", f"{module.__name__}:missing", GROUP),
        EntryPoint("claimed", f"{module.__name__}:good", GROUP),
        EntryPoint("claimed", "another:backend", GROUP),
        EntryPoint("stranger", f"{module.__name__}:good", "some.other.group"),
    ]

    def lookup(*, group: str) -> EntryPoints:
        return EntryPoints(points).select(group=group)

    monkeypatch.setattr("quiesce.backends.registry.importlib.metadata.entry_points", lookup)


def test_names_are_sorted_unique_and_of_the_group_only() -> None:
    names = ["claimed", "compiled", "crashing", "good", "integer", "lacking", "leaving", "mute", "nameless"]
    names += ["nowhere", "quitting", "rude", "uncompiled", "unknowing"]
    assert list(backend_names()) == names


def test_a_backend_is_loaded_by_name_even_if_found_twice() -> None:
    assert isinstance(load_backend("good"), Fake)


def test_every_load_makes_a_new_backend() -> None:
    assert load_backend("good") is not load_backend("good")


def test_unknown_name_lists_the_known_and_the_nearest() -> None:
    with pytest.raises(
        ConfigurationError, match=r"unknown backend 'god', perhaps 'good'; write one of claimed, .*rude"
    ):
        load_backend("god")


def test_nothing_installed_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.backends.registry._entry_points", lambda: EntryPoints([]))
    assert backend_names() == ()
    with pytest.raises(ConfigurationError, match="install quiesce"):
        load_backend("good")


def test_two_distributions_that_claim_one_name_are_both_named() -> None:
    with pytest.raises(ConfigurationError, match=r"another:backend and as quiesce_test_factories:good; uninstall one"):
        load_backend("claimed")


def test_a_factory_that_makes_no_backend_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'integer' = 'quiesce_test_factories:integer' makes int"):
        load_backend("integer")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "it cannot be imported: No module named 'no_such_module_at_all'"),
        ("nameless", "it raised AttributeError"),
        ("crashing", "it raised ZeroDivisionError: boom"),
        ("leaving", "it raised SystemExit: 0"),
        ("lacking", "no device"),
    ],
)
def test_a_factory_that_fails_makes_the_backend_unavailable(name: str, reason: str) -> None:
    with pytest.raises(BackendUnavailable) as caught:
        load_backend(name)
    assert caught.value.backend == name
    assert caught.value.reason.startswith(reason)
    assert caught.value.remedy


def test_a_backend_that_nobody_named_is_not_compiled_for_the_run() -> None:
    left_out = probe_unnamed("uncompiled")
    remedy = "'quiesce doctor uncompiled' compiles it, once"
    assert left_out == Unusable("uncompiled", "not compiled yet", remedy, Lack.COMPILATION)
    assert left_out.in_short == ("not compiled yet", remedy)
    assert isinstance(probe_backend("uncompiled"), Usable)


@pytest.mark.parametrize("name", ["good", "compiled", "unknowing", "mute", "nowhere"])
def test_any_other_backend_is_probed_alike_whether_it_was_named_or_not(name: str) -> None:
    named, unnamed = probe_backend(name), probe_unnamed(name)
    assert type(unnamed) is type(named)
    assert unnamed == named or isinstance(unnamed, Usable)


def test_probing_describes_what_works() -> None:
    probed = probe_backend("good")
    assert isinstance(probed, Usable)
    assert (probed.name, probed.description.version) == ("good", "3")


@pytest.mark.parametrize(
    ("name", "reason", "remedy"),
    [
        ("mute", "no driver", "install one"),
        ("lacking", "no device", "plug one in"),
        ("rude", "it raised RuntimeError: oops", "repair describe(): it raises BackendUnavailable or answers"),
        ("quitting", "it raised SystemExit: 7", "repair describe(): it raises BackendUnavailable or answers"),
    ],
)
def test_probing_says_why_not(name: str, reason: str, remedy: str) -> None:
    assert probe_backend(name) == Unusable(name, reason, remedy)


def test_probing_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ConfigurationError):
        probe_backend("unknown")


def test_process_takes_a_command() -> None:
    backend = load_backend("command:./driver --fast 'two words'")
    assert isinstance(backend, CommandBackend)
    assert backend.command == ("./driver", "--fast", "two words")


def test_reference_takes_a_fault() -> None:
    backend = load_backend("reference:pool.no_squeeze")
    assert backend.describe().name == "reference:pool.no_squeeze"


def test_reference_refuses_an_unknown_fault() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown fault 'pool\.no_squeze'"):
        load_backend("reference:pool.no_squeze")


@pytest.mark.parametrize("name", ["command:", "reference: ", "served:"])
def test_a_prefix_without_argument_is_refused(name: str) -> None:
    wanted = r"names no argument; write (command:COMMAND|reference:FAULT|served:NAME)"
    with pytest.raises(ConfigurationError, match=wanted):
        load_backend(name)


def test_served_runs_a_backend_in_a_process_of_its_own() -> None:
    backend = load_backend("served:reference:pool.accepts_double_free")
    assert isinstance(backend, CommandBackend)
    context = backend.open(DeviceProfile())
    assert isinstance(context.perform(ops.Allocate("a", 512)).outcome, Allocated)
    context.perform(ops.Free("a"))
    assert context.perform(ops.Free("a")).outcome == Done()  # the fault that was asked for
    context.close()


def test_served_refuses_an_unknown_name_before_anything_is_started() -> None:
    with pytest.raises(ConfigurationError, match="unknown backend 'hoost'"):
        load_backend("served:hoost")


def test_names_are_looked_up_without_importing_anything() -> None:
    before = set(sys.modules)
    backend_names()
    assert not set(sys.modules) - before
