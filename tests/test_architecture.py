"""Who imports whom: the table of rooms, bottom to top, and a check that the package keeps to it.

A room is a module or a package of quiesce. It may import the rooms that its row names, which all stand above it in the
table, and itself. Third-party modules are imported where the tables below say so, and at module level only where the
whole room is about them. Everything else comes from the standard library.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = Path(__file__).resolve().parent.parent / "harness" / "quiesce"


def _rooms(names: str) -> frozenset[str]:
    return frozenset(names.split())


ROOMS: Final[dict[str, frozenset[str]]] = {
    "doors": _rooms(""),
    "simulator.marking": _rooms(""),  # for programs, which import nothing else
    "model": _rooms(""),
    "files": _rooms("model"),
    "allocators": _rooms(""),
    "allocators.indexes": _rooms("model"),
    "allocators.cases": _rooms("doors model"),
    "allocators.reference": _rooms("doors model allocators.indexes"),
    "allocators.oracle": _rooms("doors model allocators.indexes"),
    "allocators.answers": _rooms("model"),
    "allocators.lockstep": _rooms("model allocators.answers allocators.cases allocators.oracle"),
    "backends": _rooms(""),
    "backends.c_heap": _rooms("model"),
    "backends.host": _rooms("model backends.c_heap"),
    "backends.device_tables": _rooms("model"),
    "backends.opencl": _rooms("model backends.device_tables"),
    "backends.cupy": _rooms("model backends.device_tables"),
    "backends.command": _rooms("model allocators.cases"),
    "backends.reference": _rooms("model allocators.reference"),
    "backends.python_source": _rooms("model"),
    "backends.registry": _rooms("model backends.command backends.python_source backends.reference"),
    "backends.serving": _rooms("model backends.registry allocators.cases"),
    "simulator": _rooms(""),
    "simulator.interpreter_start": _rooms(""),
    "simulator.runtime": _rooms("doors model files"),
    "simulator.kernels": _rooms("model files simulator.runtime"),
    "simulator.libraries": _rooms("simulator.runtime"),
    "simulator.judge": _rooms("doors model files allocators.indexes allocators.oracle simulator.runtime"),
    "backends.simulated": _rooms("model simulator.runtime"),
    "backends.simulated_allocator": _rooms("model backends.simulated simulator.runtime"),
    "allocators.execution": _rooms(
        "model allocators.answers allocators.cases allocators.lockstep allocators.reference backends.reference"
    ),
    "allocators.generation": _rooms("doors model files allocators.cases allocators.lockstep allocators.oracle"),
    "allocators.generation.strategies": _rooms("model allocators.generation"),
    "allocators.generation.corpus": _rooms("model allocators.cases allocators.generation"),
    "allocators.sweep": _rooms(
        "model allocators.answers allocators.cases allocators.generation allocators.lockstep allocators.oracle"
    ),
    "allocators.recording": _rooms("model allocators.cases allocators.generation allocators.oracle backends.command"),
    "leaks": _rooms("doors model files allocators.cases simulator.judge simulator.runtime"),
    "reporting": _rooms("doors model files allocators.oracle"),
    "allocators.conformance": _rooms(
        "doors model allocators.answers allocators.cases allocators.execution allocators.generation "
        "allocators.lockstep allocators.sweep backends.command backends.python_source reporting"
    ),
    "subjects": _rooms(
        "doors model files allocators.cases allocators.conformance allocators.execution backends.command reporting "
        "simulator.judge simulator.runtime"
    ),
    "": _rooms(  # the door, which loads a name when it is used
        "doors model allocators.cases allocators.conformance allocators.execution allocators.generation "
        "allocators.generation.corpus allocators.generation.strategies backends.command backends.registry "
        "backends.serving simulator.marking"
    ),
    "cli": _rooms(
        "model files allocators.answers allocators.cases allocators.conformance allocators.execution "
        "allocators.generation allocators.generation.corpus allocators.oracle allocators.reference "
        "backends.python_source backends.registry reporting simulator.judge simulator.runtime subjects"
    ),
    "__main__": _rooms("cli"),
    "pytest_plugin": _rooms(
        "model files allocators.cases allocators.execution allocators.generation allocators.generation.strategies "
        "backends.registry leaks reporting simulator.judge simulator.runtime"
    ),
}

LAZY_THIRD_PARTY: Final = {
    "backends.device_tables": _rooms("numpy"),
    "backends.opencl": _rooms("pyopencl numpy"),
    "backends.cupy": _rooms("cupy numpy"),
    "allocators.generation.corpus": _rooms("hypothesis"),
    "simulator.kernels": _rooms("llvmlite lz4 zstandard"),
    "leaks": _rooms("memray"),
    "reporting": _rooms("jinja2 markupsafe"),
    "cli": _rooms("distributed mpi4py"),
    "pytest_plugin": _rooms("_pytest hypothesis"),
}
"""Imported inside functions, or for type checkers only."""
EAGER_THIRD_PARTY: Final = {
    "allocators.generation.strategies": _rooms("hypothesis"),
    "pytest_plugin": _rooms("pytest"),
    "simulator.libraries": _rooms("numpy scipy"),
}
"""Imported at module level: these rooms are nothing without them."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, and whether importing the importer imports it."""

    line: int
    module: str
    eager: bool


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imports(node: ast.AST, eager: bool = True) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(child.lineno, alias.name, eager) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: write the import from its top: from quiesce.… import …"
            # "from quiesce.leaks import check" can mean a module or a name: the longer path tells them apart below.
            yield from (Import(child.lineno, f"{child.module}.{alias.name}", eager) for alias in child.names)
        else:
            lazy = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _is_type_checking(child)
            yield from _imports(child, eager and not lazy)


def room_of(module: str) -> str:
    """Return the room with the longest name that holds a module, a dotted path below quiesce."""
    parts = module.split(".") if module else []
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in ROOMS), "")


def _module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _complaint(room: str, seen: Import) -> str | None:
    top = seen.module.partition(".")[0]
    if top == "quiesce":
        target = room_of(seen.module.removeprefix("quiesce."))
        if target == room or target in ROOMS[room]:
            return None
        return f"'{room}' may not import '{target}'"
    if top in sys.stdlib_module_names or top in EAGER_THIRD_PARTY.get(room, ()):
        return None
    if top not in LAZY_THIRD_PARTY.get(room, ()):
        return f"'{room}' may not import the third-party module '{top}'"
    return f"'{top}' is imported at module level; import it inside the function that uses it" if seen.eager else None


MODULES: Final = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=[path.relative_to(PACKAGE).as_posix() for path in MODULES])
def test_modules_import_what_their_room_may(path: Path) -> None:
    module = _module_of(path)
    room = room_of(module)
    assert room or not module, f"'{module}' is in no room: add a row to ROOMS, below everything that it imports"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    complaints = [f"{path}:{seen.line}: {text}" for seen in _imports(tree) if (text := _complaint(room, seen))]
    assert not complaints, "\n".join(complaints)


def whole_graph() -> dict[str, set[str]]:
    """Return for each module the modules that it imports anywhere: in functions and for type checkers as well."""
    graph: dict[str, set[str]] = {f"quiesce.{_module_of(path)}".removesuffix("."): set() for path in MODULES}
    for path in MODULES:
        module = f"quiesce.{_module_of(path)}".removesuffix(".")
        for seen in _imports(ast.parse(path.read_text(encoding="utf-8"))):
            found = next((name for name in (seen.module, seen.module.rpartition(".")[0]) if name in graph), None)
            if found is not None:
                graph[module].add(found)
    return graph


def circles_of(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules of which each reaches every other by imports."""
    reached = {module: _reached(module, graph) for module in graph}
    groups = {tuple(sorted(other for other in reached[each] if each in reached[other])) for each in graph}
    return [list(group) for group in sorted(groups) if group]


def _reached(module: str, graph: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(graph[module])
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting += graph[other]
    return reached


def test_no_modules_import_each_other() -> None:
    graph = whole_graph()
    assert sum(map(len, graph.values())) > len(graph), "hardly any import was seen"
    assert circles_of(graph) == []


@pytest.mark.parametrize(
    ("graph", "circles"),
    [
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, [["a", "b", "c"]]),
        ({"a": {"a"}}, [["a"]]),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, []),
    ],
)
def test_a_circle_of_imports_is_seen(graph: dict[str, set[str]], circles: list[list[str]]) -> None:
    assert circles_of(graph) == circles


def test_rooms_import_only_rooms_above_them() -> None:
    order = list(ROOMS)
    for room, allowed in ROOMS.items():
        for other in allowed:
            assert other in ROOMS, f"'{room}' may import '{other}', which is no room"
            assert order.index(other) < order.index(room), f"'{room}' may import '{other}', which stands below it"


def test_nobody_imports_the_surfaces() -> None:
    for surface in ("cli", "pytest_plugin"):
        assert [room for room, allowed in ROOMS.items() if surface in allowed and room != "__main__"] == []


def test_no_row_is_stale() -> None:
    used = {room_of(_module_of(path)) for path in MODULES}
    assert set(ROOMS) == used


def test_no_permission_above_the_values_is_stale() -> None:
    used: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in MODULES:
        seen = _imports(ast.parse(path.read_text(encoding="utf-8")))
        names = [each.module for each in seen if each.module.startswith("quiesce.")]
        used[room_of(_module_of(path))].update(room_of(name.removeprefix("quiesce.")) for name in names)
    stale = {room: sorted(allowed - {"model"} - used[room]) for room, allowed in ROOMS.items()}
    assert {room: names for room, names in stale.items() if names} == {}


@pytest.mark.parametrize(
    ("room", "text", "complaint"),
    [
        ("allocators.oracle", "import quiesce.allocators.reference.pool", "may not import 'allocators.reference'"),
        ("allocators.oracle", "from quiesce.allocators import lockstep", "may not import 'allocators.lockstep'"),
        ("allocators.reference", "from quiesce.allocators.oracle import model", "may not import 'allocators.oracle'"),
        ("backends.host", "from quiesce.backends.opencl import ledger", "may not import 'backends.opencl'"),
        ("backends.opencl", "import pyopencl", "'pyopencl' is imported at module level"),
        ("allocators.lockstep", "def late():\n    import pytest", "may not import the third-party module 'pytest'"),
    ],
)
def test_a_wrong_import_is_seen(room: str, text: str, complaint: str) -> None:
    complaints = [_complaint(room, seen) or "" for seen in _imports(ast.parse(text))]
    assert complaint in complaints[0]


@pytest.mark.parametrize(
    ("room", "text"),
    [
        ("backends.opencl", "def late():\n    import pyopencl"),
        ("backends.opencl", "if TYPE_CHECKING:\n    import pyopencl"),
        ("backends.opencl", "from quiesce.backends.opencl import ledger"),
        ("pytest_plugin", "import pytest"),
        ("allocators.lockstep", "import json"),
    ],
)
def test_a_right_import_is_let_be(room: str, text: str) -> None:
    assert [_complaint(room, seen) for seen in _imports(ast.parse(text))] == [None]
