"""The simulated runtime compiles: the other tests are skipped where it can't be, and would not say so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import (
    WARNINGS_NAME,
    build_audit,
    build_library,
    find_compiler,
    require_platform,
)


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        require_platform()
        find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_the_runtime_compiles_where_there_is_a_compiler() -> None:
    assert build_library().exists()


def test_the_module_for_the_loader_compiles_where_there_is_a_compiler() -> None:
    assert build_audit().exists()


@pytest.mark.parametrize("build", [build_library, build_audit])
def test_the_compiler_has_nothing_to_complain_about(build: Callable[[], Path]) -> None:
    assert build().with_name(WARNINGS_NAME).read_text() == ""


def test_what_a_newer_compiler_warns_of_stops_nobody(held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (held / "waited").mkdir()  # nobody holds it
    script = (held / "compiler").read_text()
    (held / "compiler").write_text(f"{script}\necho 'warning: this is new' >&2\n")
    made = build_audit()
    assert made.read_bytes()
    assert "warning: this is new" in made.with_name(WARNINGS_NAME).read_text()


def test_a_compiler_that_sees_the_whole_program_at_once_does_so() -> None:
    version = subprocess.run([*find_compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    if "Free Software Foundation" not in version:
        pytest.skip("only GCC says in the library how that was compiled")
    assert b"GNU GIMPLE" in build_library().read_bytes()


COMPILER: Final = """#!/bin/sh
# writes what it is told to, and at the first link says that it has begun and waits to be told to go on
for word; do
    case "$before" in -o) to=$word ;; esac
    case "$word" in -shared) links=yes ;; esac
    before=$word
done
if [ "$links" ]; then
    echo "$to" >> log
    if mkdir waited 2>/dev/null; then echo begun > begun; read word < go; fi
fi
echo made > "$to"
"""
"""A compiler that can be held."""
BUILD: Final = """
from quiesce.simulator.runtime.build import build_all
build_all(lambda text: print(text, flush=True))
"""


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a compiler that can be held, which is the one that is used."""
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    for name in ("begun", "go"):
        os.mkfifo(tmp_path / name)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("QUIESCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def builders(folder: Path, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    started = [
        subprocess.Popen([sys.executable, "-c", BUILD], cwd=folder, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for each in started:
            with each:  # waits for its end
                each.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_processes_that_find_an_empty_cache_compile_once_and_say_what_they_wait_for(held: Path) -> None:
    with builders(held, 1) as (first,):
        assert first_line(first).startswith("compiling the simulated runtime")
        (held / "begun").read_text()
        with builders(held, 3) as others:
            said = {first_line(each) for each in others}
            assert said == {"waiting for another process, which compiles the simulated runtime; this is done once\n"}
            (held / "go").write_text("go\n")
            assert [each.communicate()[0] for each in (first, *others)] == [""] * 4, "nobody else compiles"
    linked = [Path(line).name for line in (held / "log").read_text().splitlines()]
    assert linked == ["libquiesce-simulator.so", "libquiesce-audit.so"]
    with builders(held, 1) as (later,):
        assert later.communicate()[0] == "", "nothing is waited for"


def test_a_process_that_was_killed_while_it_compiled_is_not_waited_for(held: Path) -> None:
    with builders(held, 1) as (first,):
        (held / "begun").read_text()
        with builders(held, 1) as (second,):
            assert first_line(second).startswith("waiting for another process")
            first.kill()
            assert first_line(second).startswith("compiling the simulated runtime")
            (held / "go").write_text("go\n")  # for the compiler of the first one, which nobody ended
            assert second.wait() == 0


def test_what_is_in_the_cache_needs_no_compiler(held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (held / "waited").mkdir()  # nobody holds it
    (held / "bin").mkdir()
    shutil.copy(held / "compiler", held / "bin" / "gcc")
    monkeypatch.chdir(held)
    monkeypatch.setenv("CC", "gcc")
    monkeypatch.setenv("PATH", f"{held / 'bin'}:{os.environ['PATH']}")
    made = build_library()
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(held))
    assert build_library() == made
    with pytest.raises(BackendUnavailable, match="no C compiler was found"):
        build_audit()


def cut(path: Path) -> None:
    os.truncate(path, 3)


@pytest.mark.parametrize("damage", [cut, lambda path: path.chmod(0o777), lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("build", [build_library, build_audit])
def test_a_library_that_is_not_as_it_was_is_compiled_again(
    build: Callable[[], Path], damage: Callable[[Path], object], held: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (held / "waited").mkdir()  # nobody holds it
    made = build()
    content = made.read_bytes()
    damage(made)
    assert build() == made
    assert made.read_bytes() == content
    assert made.stat().st_mode & 0o777 == 0o600
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"quiesce: '{made}' in the cache is")
    assert said.endswith("; it is made again")
