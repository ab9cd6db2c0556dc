"""What an environment needs is kept until something that was looked at changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from quiesce.simulator.runtime import stubs
from quiesce.simulator.runtime.cache import cache_folder
from quiesce.simulator.runtime.clients import Command
from quiesce.simulator.runtime.elf_reading import read_dependencies
from quiesce.simulator.runtime.elf_writing import StubFunction, StubLibrary, write_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.lookalikes import write_lookalikes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux")

LONG_AGO = 10**18
SIMULATED = parse_flavour("hip:7")


class Environment:
    """A Python environment, and how often it was looked through."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.packages = folder / "lib" / "python3.11" / "site-packages"
        self.packages.mkdir(parents=True)
        (folder / "bin").mkdir()
        (folder / "pyvenv.cfg").write_text("home = elsewhere\n")
        self.interpreter = folder / "bin" / "python3.11"
        self.interpreter.write_bytes(write_library(StubLibrary("python")))
        self.runtime = folder / "libruntime.so"
        self.runtime.write_bytes(write_library(StubLibrary("libruntime.so", (StubFunction("hipMalloc", 2),))))
        self.looked = 0
        self._folder = folder
        monkeypatch.setenv("QUIESCE_CACHE", str(folder / "cache"))
        look = stubs.gpu_modules

        def counted(folders: tuple[Path, ...]) -> stubs.Modules:
            self.looked += 1
            return look(folders)

        monkeypatch.setattr(stubs, "gpu_modules", counted)

    def install(self, name: str, *needed: str) -> None:
        (self.packages / name).write_bytes(write_library(StubLibrary(name, needed=needed)))

    def settle(self) -> None:
        """Let all of it be old."""
        for path in (self._folder, *self._folder.rglob("*")):
            if "cache" not in path.parts:
                os.utime(path, ns=(LONG_AGO, LONG_AGO))

    def command(self, environment: Mapping[str, str] | None = None) -> Command:
        return Command(self.interpreter, (), (self.interpreter,), environment or {})

    def written(self) -> set[str]:
        """Return the names of the libraries that a run gets."""
        folder = self._folder / f"run{len(list(self._folder.glob('run*')))}"
        folder.mkdir()
        os.utime(self._folder, ns=(LONG_AGO, LONG_AGO))
        write_lookalikes(folder, self.runtime, SIMULATED, self.command())
        assert all(read_dependencies(path).soname == path.name.removeprefix("last-") for path in folder.iterdir())
        return {path.name for path in folder.iterdir()}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    made = Environment(tmp_path, monkeypatch)
    made.install("module.so", "libamdhip64.so.7", "libhipblas.so.3")
    made.settle()
    return made


NAMES = {*SIMULATED.libraries, *SIMULATED.offered}


def test_a_second_run_does_not_look_again(environment: Environment) -> None:
    assert [environment.written(), environment.written(), environment.looked] == [NAMES, NAMES, 1]


def test_what_was_changed_just_now_is_not_kept(environment: Environment) -> None:
    environment.install("module.so", "libroctx64.so.4")
    assert environment.written() == {*NAMES, "libroctx64.so.4"}
    environment.settle()
    assert environment.written() == {*NAMES, "libroctx64.so.4"}
    assert environment.looked == 2


@pytest.mark.parametrize("name", ["module.so", "another.so"])
def test_a_change_is_seen(environment: Environment, name: str) -> None:
    """A module that is overwritten in its place leaves its folder's time as it was."""
    environment.written()
    environment.install(name, "libroctx64.so.4")
    assert "libroctx64.so.4" in environment.written()


def test_a_library_that_appears_where_one_was_looked_for_is_seen(environment: Environment, tmp_path: Path) -> None:
    real = tmp_path / "real"
    module = StubLibrary("module.so", needed=("librocblas.so.5",))
    environment.written()
    (environment.packages / "module.so").write_bytes(write_library(module))
    environment.settle()
    searched = {"LD_LIBRARY_PATH": str(real)}
    for present in (False, True):
        run = tmp_path / f"run-{present}"
        run.mkdir()
        if present:
            real.mkdir()
            (real / "librocblas.so.5").write_bytes(write_library(StubLibrary("librocblas.so.5")))
        write_lookalikes(run, environment.runtime, SIMULATED, environment.command(searched))
        assert (run / "librocblas.so.5").exists() is not present


def test_a_library_of_another_client_is_kept_as_a_link(environment: Environment, tmp_path: Path) -> None:
    """A module of a package finds by itself what another one only finds when it is loaded."""
    environment.install("librocblas.so.5", "libamdhip64.so.7")
    environment.settle()
    environment.install("module.so", "librocblas.so.5")
    environment.settle()
    for run in range(2):
        assert "last-librocblas.so.5" in environment.written()
        link = tmp_path / f"run{run}" / "last-librocblas.so.5"
        assert link.readlink() == environment.packages / "librocblas.so.5"
    assert environment.looked == 1


def test_a_damaged_entry_is_made_again(environment: Environment, tmp_path: Path) -> None:
    environment.written()
    (entry,) = (tmp_path / "cache").rglob("*.stubs")
    entry.write_bytes(entry.read_bytes()[:20])
    assert environment.written() == NAMES
    assert environment.looked == 2


def test_another_runtime_is_another_entry(environment: Environment, tmp_path: Path) -> None:
    environment.written()
    environment.runtime = environment.runtime.rename(tmp_path / "libother.so")
    os.utime(tmp_path, ns=(LONG_AGO, LONG_AGO))
    environment.written()
    assert environment.looked == 2
    assert cache_folder().is_relative_to(tmp_path)


def test_an_installed_library_is_the_one_that_programs_open(environment: Environment) -> None:
    environment.install("librocblas.so.5")  # which nothing of the environment needs
    environment.settle()
    assert NAMES - environment.written() == {"librocblas.so.5"}
