"""The doors: what users import, and what a slice of the package shows to the other slices."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from tests.documentation.pages import documents
from tests.test_architecture import whole_graph

import quiesce

ROOT: Final = Path(__file__).resolve().parent.parent
DOORS: Final = ("quiesce", "quiesce.backends.simulated_allocator")
"""What documents, fixtures and programs of users import. docs/reference/public_names.md says so."""
PROGRAMS: Final = ("quiesce", "quiesce.backends.serving", "quiesce.allocators.recording")
"""Modules behind ``python -m``."""
GROUPS: Final = ("quiesce.backends", "quiesce.prefixes")
"""Groups of entry points."""
PAGE: Final = (ROOT / "docs" / "reference" / "public_names.md").read_text(encoding="utf-8")
READERS: Final = sorted(
    {
        *documents(),
        *ROOT.glob("*.md"),
        *(path for folder in ("cases", "docs", "fixtures") for path in (ROOT / folder).rglob("*.md")),
        *(path for folder in ("docs", "fixtures") for path in (ROOT / folder).rglob("*.py")),
        *(ROOT / "fixtures").rglob("*.toml"),
    }
    - {ROOT / "CHANGELOG.md"}
)
LAZY: Final = sorted(
    ".".join(path.parent.relative_to(ROOT / "harness").parts)
    for path in (ROOT / "harness").rglob("__init__.py")
    if "lazy_names" in path.read_text(encoding="utf-8")
)
"""The packages that are doors."""
_FROM: Final = re.compile(r"^ *from (quiesce(?:\.[\w.]+)?) import (\([^)]*\)|[^\n(]+)$", re.MULTILINE)
_NAMED: Final = re.compile(r"(?<![\w./-])quiesce((?:\.\w+)+)")


def imports(text: str) -> Iterator[tuple[str, str]]:
    """Yield each module of quiesce that a text imports from, with each name."""
    for module, names in _FROM.findall(text):
        for name in re.sub(r"#.*", "", names).strip("() \n").split(","):
            if name.strip():
                yield module, name.split()[0]


def spoken(text: str) -> Iterator[str]:
    """Yield each name below quiesce that a text has in full, outside of imports."""
    yield from (f"quiesce{rest}" for rest in _NAMED.findall(_FROM.sub("", text)))


def wrong(text: str) -> list[str]:
    """Return what a text uses that is no name of a door."""
    bad = [f"from {module} import {name}" for module, name in imports(text) if not _is_public(module, name)]
    known = {*DOORS, *PROGRAMS, *GROUPS}
    return bad + [name for name in spoken(text) if name not in known and not _is_public(*_split(name))]


def _split(dotted: str) -> tuple[str, str]:
    door = max((door for door in DOORS if dotted.startswith(f"{door}.")), key=len)
    return door, dotted.removeprefix(f"{door}.").partition(".")[0]


def _is_public(module: str, name: str) -> bool:
    return module in DOORS and name in import_module(module).__all__


@pytest.mark.parametrize("path", READERS, ids=[path.relative_to(ROOT).as_posix() for path in READERS])
def test_documents_and_fixtures_use_doors_alone(path: Path) -> None:
    assert wrong(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from quiesce import Allocate, mark", []),
        ("from quiesce import (\n    Allocate,  # a comment\n    operations as ops,\n)", []),
        ("write `quiesce.mark`, `python -m quiesce.backends.serving`; ~/.cache/quiesce.old", []),
        ("    from quiesce.model.operations import Free", ["from quiesce.model.operations import Free"]),
        ("from quiesce import Allocate, Nothing", ["from quiesce import Nothing"]),
        ("see quiesce.model.outcomes", ["quiesce.model.outcomes"]),
    ],
)
def test_what_is_no_door_is_seen(text: str, found: list[str]) -> None:
    assert wrong(text) == found


def test_the_documents_import_something() -> None:
    used = {name for path in READERS for _, name in imports(path.read_text(encoding="utf-8"))}
    assert len(used) > 60


@pytest.mark.parametrize("package", LAZY)
def test_each_name_is_given_to_type_checkers_from_where_it_is_loaded(package: str) -> None:
    door = import_module(package)
    tree = ast.parse(Path(str(door.__file__)).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    given = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        given.update({alias.name: str(node.module) for alias in node.names if alias.asname == alias.name})
    assert sorted(given) == sorted(door.__all__)
    for name, home in given.items():
        module = import_module(home)
        at_home = getattr(module, name) if hasattr(module, name) else sys.modules[f"{home}.{name}"]
        assert getattr(door, name) is at_home


@pytest.mark.parametrize("door", DOORS)
def test_every_name_of_a_door_loads(door: str) -> None:
    module = import_module(door)
    assert len(set(module.__all__)) == len(module.__all__)
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'quiesce' has no attribute 'Alocate'"):
        quiesce.Alocate  # type: ignore[attr-defined]  # noqa: B018


def test_the_page_has_every_name_once() -> None:
    tables = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    named = [name for cell in tables for name in re.findall(r"`(.*?)`", cell)]
    programs = [name for name in named if name.startswith("python -m ")]
    assert sorted(set(named) - set(programs)) == sorted(vars(quiesce)["__all__"])
    assert len(set(named)) == len(named)
    assert sorted(name.split()[2] for name in programs) == sorted(PROGRAMS)


def test_importing_quiesce_loads_next_to_nothing() -> None:
    code = "import sys, quiesce; print(*(name for name in sys.modules if name.partition('.')[0] == 'quiesce'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) <= 3


SHOWN: Final[dict[str, str]] = {
    "allocators": "answers execution indexes lockstep",
    "allocators.cases": "__init__",
    "allocators.reference": "__init__",
    "allocators.oracle": "__init__",
    "allocators.generation": "__init__ corpus strategies",  # these two need Hypothesis
    "allocators.sweep": "__init__ sweep",
    "allocators.conformance": "__init__",
    "allocators.recording": "",
    "simulator": "",
    "simulator.runtime": "__init__ cache",
    "simulator.judge": "__init__ leak_checkers.judgement leak_checkers.report",
    "simulator.kernels": "",
    "leaks": "__init__ start",  # it looks before tested code runs
    "reporting": "__init__ terminal",
    "backends": "command python_source reference registry",  # loaded by name, each alone
    "subjects": "__init__ catalogue",
    "pytest_plugin": "",
    "cli": "main",
}
"""The modules of each slice that other slices import. All its other modules are private to it.

``model`` and ``files`` have no row: every slice may import all of them. The modules of ``allocators`` are those that
no row below has.
"""


def _slice_of(module: str) -> str:
    return max((each for each in SHOWN if f"{module}.".startswith(f"quiesce.{each}.")), key=len, default="")


def test_slices_import_what_others_show_and_nothing_else() -> None:
    used: dict[str, set[str]] = {each: set() for each in SHOWN}
    for module, targets in whole_graph().items():
        for target in targets if module != "quiesce" else ():
            if (owner := _slice_of(target)) and owner != _slice_of(module):
                used[owner].add(target.removeprefix(f"quiesce.{owner}").removeprefix(".") or "__init__")
    shown = {each: set(names.split()) for each, names in SHOWN.items()}
    private = {each: sorted(names - shown[each]) for each, names in used.items() if names - shown[each]}
    assert private == {}, "these modules are private to their slices: import what SHOWN has, or add a module to it"
    stale = {each: sorted(shown[each] - names) for each, names in used.items() if shown[each] - names}
    assert stale == {}, "no other slice imports these modules: take them out of SHOWN"
