"""Backends that are not installed: by file and by module, and the names under which they are found again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.backends.python_source import name_of
from quiesce.backends.reference import faulty
from quiesce.backends.registry import load_backend
from quiesce.model.backend import Backend
from quiesce.model.errors import BackendUnavailable, ConfigurationError

SOURCE = """
from beside import VERSION
from quiesce.model.backend import Capability, Description

class Backend:
    def describe(self):
        return Description(name="mine", version=VERSION, capabilities=frozenset({Capability.MEMORY}))

    def open(self, profile):
        raise RuntimeError("no context")

class Wanting(Backend):
    def __init__(self, size):
        self.size = size

def backend():
    return Backend()

def nothing():
    return 7

if __name__ == "__main__":
    from quiesce.allocators.conformance import run_conformance
    print(run_conformance(Backend(), operations=10).text())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_allocator.py").write_text(SOURCE)
    (tmp_path / "beside.py").write_text('VERSION = "3"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


@pytest.mark.parametrize("name", ["my_allocator.py:Backend", "my_allocator.py:backend", "my_allocator:backend"])
@pytest.mark.usefixtures("folder")
def test_a_factory_is_found_by_file_and_by_module(name: str) -> None:
    assert load_backend(f"python:{name}").describe().version == "3"


@pytest.mark.usefixtures("folder")
def test_one_runs_in_a_process_of_its_own() -> None:
    assert "mine" in load_backend("served:python:my_allocator.py:Backend").describe().version


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("my_allocator.py", ConfigurationError, "names no factory"),
        ("my_allocator.py:nothing", ConfigurationError, "makes int, which is not a backend"),
        ("my_allocator.py:absent", BackendUnavailable, "absent"),
        ("missing.py:Backend", BackendUnavailable, "there is no file missing.py"),
        ("my_allocator.py:Wanting", BackendUnavailable, "size"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_makes_no_backend_is_said(name: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        load_backend(f"python:{name}")


@pytest.mark.usefixtures("folder")
def test_the_name_makes_it_again() -> None:
    backend = load_backend("python:my_allocator:Backend")
    name = name_of(backend)
    assert name == "python:my_allocator:Backend"
    assert type(load_backend(name)) is type(backend)


def test_what_needs_arguments_or_is_made_in_a_function_has_no_name() -> None:
    class Local:
        def describe(self) -> object:
            return None

    local: Backend = Local()  # type: ignore[assignment]
    assert name_of(local) is None
    assert name_of(faulty("pool.accepts_double_free")) is None


def test_the_command_that_reproduces_a_finding_names_the_program_s_own_file(folder: Path) -> None:
    run = subprocess.run([sys.executable, "my_allocator.py"], cwd=folder, check=True, capture_output=True, text=True)
    assert "reproduce: quiesce conformance --backend python:my_allocator.py:Backend" in run.stdout
