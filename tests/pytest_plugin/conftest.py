"""A project with case files, and backends that a third party declares the way third parties do."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from quiesce.simulator.runtime.cache import cache_folder

# Loaded once: pytester forgets what a run loaded, and each run would load it anew.
for _module in ("quiesce.pytest_plugin.case_items", "quiesce.reporting.html"):
    importlib.import_module(_module)

PLUGIN: Final = "quiesce.pytest_plugin.plugin"
WITHOUT_HYPOTHESIS: Final = ("-pno:hypothesispytest",)
"""Its summary imports all of Hypothesis in each run, two seconds of rewriting, for projects that do not use it."""
WITHOUT_NEIGHBOURS: Final = tuple(
    f"-pno:{name}" for name in ("asyncio", "benchmark", "memray", "rerunfailures", "timeout")
)
"""Plugins that only tests of leak checks run next to."""
GOOD: Final = """\
title: A block comes and goes
kind:  control
needs: memory

a = allocate 1MiB
free a
"""
BAD: Final = """\
title:    A block is refused
kind:     control
upstream: example/project#1
needs:    memory

a = allocate 1MiB -> out of memory
free a
"""
MALFORMED: Final = """\
title: A word is wrong
kind:  contol

a = allocate 1MiB
"""
LENT: Final = '''\
"""Backends of a third party, each good for one thing."""

import os

from quiesce.model.backend import Capability, Description
from quiesce.model.errors import BackendUnavailable


class Backend:
    def __init__(self, name, capabilities=frozenset()):
        self.name = name
        self.capabilities = capabilities

    def describe(self):
        return Description(self.name, "1", self.capabilities)

    def open(self, profile):
        raise AssertionError("nothing of a bare backend is ever opened")


class Absent(Backend):
    def describe(self):
        raise BackendUnavailable(self.name, "there is no such device", "buy one")


class Dying(Backend):
    def open(self, profile):
        os._exit(7)


class Interrupted(Backend):
    def open(self, profile):
        raise KeyboardInterrupt


def absent():
    return Absent("absent")


def bare():
    return Backend("bare")


def confused():
    raise ValueError("a\\nb")


def dying():
    return Dying("dying", frozenset({Capability.MEMORY}))


def interrupted():
    return Interrupted("interrupted", frozenset({Capability.MEMORY}))
'''


@dataclass(frozen=True)
class Project:
    """A folder in which pytest runs with the plugin."""

    pytester: pytest.Pytester
    plugin_arguments: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The root folder."""
        return self.pytester.path

    def write(self, name: str, text: str) -> Path:
        """Write a file below the root folder."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in this process; fast, and good for all that imports no vendor library."""
        return self.pytester.runpytest_inprocess(*self.plugin_arguments, *arguments)

    def run_beside(self, neighbours: str, *arguments: str) -> pytest.RunResult:
        """Run pytest in a process of its own, beside plugins that other runs leave out."""
        wanted = {f"-pno:{name}" for name in neighbours.split()}
        kept = [argument for argument in self.plugin_arguments if argument not in wanted]
        return self.pytester.runpytest_subprocess(*kept, *arguments)

    def run_apart(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in a process of its own."""
        return self.pytester.runpytest_subprocess(*self.plugin_arguments, *arguments)


def declare(folder: Path, name: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Declare entry points as an installed distribution does."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = []
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def simulator_cache() -> Path:
    """The folder above what is compiled of the simulated runtime; pytester's runs have a home without any."""
    return cache_folder().parents[1]


@pytest.fixture
def project(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    simulator_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Project:
    """A project with one good case, next to quiesce (installed or not) and a third party's backends."""
    monkeypatch.setenv("QUIESCE_CACHE", str(simulator_cache))
    temporary = tmp_path_factory.mktemp("temporary")  # files of others there would cost a leak check some rounds
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    site = pytester.path / "site"
    site.mkdir()
    (site / "lent.py").write_text(LENT, encoding="utf-8")
    names = ("absent", "bare", "confused", "dying", "interrupted")
    declare(site, "lent", {"quiesce.backends": {name: f"lent:{name}" for name in names}})
    if not any(point.name == "reference" for point in importlib.metadata.entry_points(group="quiesce.backends")):
        root = Path(__file__).parents[2]
        declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
        declare(site, "bare-source-tree", {"quiesce.backends": declared["quiesce.backends"]})
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    pytester.syspathinsert(site)
    installed = any(point.value == PLUGIN for point in importlib.metadata.entry_points(group="pytest11"))
    pytester.makeini("[pytest]\ntestpaths = cases\n")
    made = Project(pytester, (*WITHOUT_HYPOTHESIS, *WITHOUT_NEIGHBOURS, *(() if installed else ("-p", PLUGIN))))
    made.write("cases/pool/good.case", GOOD)
    return made
