"""Whatever stands before a program, the program is found, and the interpreter whose packages it will import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.simulator.runtime.clients import likely_interpreters, read_command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux")


class Place:
    """A folder in which a command is given: a program, virtual environments, and a folder on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = self.file("program", "\x7fELF")
        self.own = self.file("own/bin/python", "\x7fELF")
        self.system = self.file("bin/python3", "\x7fELF")
        for wrapper in ("env", "timeout", "gdb", "bash"):
            self.file(f"bin/{wrapper}", "\x7fELF")
        self.environment = {"PATH": str(folder / "bin")}

    def file(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
        return path

    def found(self, *words: str) -> set[Path]:
        """Return the programs and interpreters that words lead to, wrappers left out."""
        command = read_command([word.format(self.folder) for word in words], self.environment)
        wrappers = set((self.folder / "bin").iterdir()) - {self.system}
        return {*command.programs, *command.interpreters} - wrappers


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("{}/own/bin/python", "x.py"),
        ("own/bin/python", "x.py"),
        ("env", "A=1", "own/bin/python", "x.py"),
        ("env", "-u", "A", "{}/own/bin/python", "-i"),
        ("env", "LD_PRELOAD=x.so", "own/bin/python", "x.py"),
        ("env", "PATH={}/own/bin:/usr/bin", "python", "x.py"),
        ("timeout", "10", "own/bin/python"),
        ("gdb", "-batch", "-ex", "run", "--args", "own/bin/python", "x.py"),
        ("timeout", "--python=own/bin/python", "x"),
        ("bash", "-c", "cd /; {}/own/bin/python x.py | tee 'a log'"),
        ("bash", "-c", 'V={}/own; exec "$V/bin/python" x.py'),
        ("bash", "-c", "source own/bin/activate && python x.py"),
        ("bash", "script"),
        ("./hashbang", "x.py"),
        ("./chain", "own/bin/tool"),
        ("timeout", "5", "own/bin/tool"),
        ("own/bin/tool",),
    ],
    ids=" ".join,
)
def test_the_interpreter_behind_other_words_is_found(place: Place, words: tuple[str, ...]) -> None:
    place.file("own/bin/activate", "")
    place.file("own/bin/tool", f"#!{place.own}\nimport x\n")
    place.file("script", "# a comment that isn't quoted\nset -e\nown/bin/python x.py\n").chmod(0o644)
    place.file("hashbang", '#!/usr/bin/env bash\nexec "${V:-x}" own/bin/python "$@"\n')
    place.file("chain", '#!/bin/sh\nexec "$@"\n')
    assert place.found(*words) == {place.own}


@pytest.mark.parametrize(
    "words", [("./program",), ("gdb", "--args", "./program"), ("bash", "-c", "./program >x; echo")]
)
def test_a_program_behind_other_words_is_found(place: Place, words: tuple[str, ...]) -> None:
    assert place.found(*words) == {place.program}


def test_several_are_found(place: Place) -> None:
    assert place.found("bash", "-c", "./program; own/bin/python x.py; python3 y.py") == {
        place.program,
        place.own,
        place.system,
    }


@pytest.mark.parametrize(
    "words", [("timeout", "5", "./data"), ("timeout", "./notes.txt", "bin", "--", "a=b", "", " ", "'")]
)
def test_words_that_name_no_program_add_nothing(place: Place, words: tuple[str, ...]) -> None:
    place.file("data", "\x00").chmod(0o644)
    place.file("notes.txt", "own/bin/python is not run by this\n").chmod(0o644)
    assert place.found(*words) == set()


def test_scripts_that_start_each_other_end(place: Place) -> None:
    place.file("one", "#!/bin/sh\n./two; ./one\n")
    place.file("two", "#!/bin/sh\n./one; ./program\n")
    assert place.found("./one") == {place.program}


def test_what_would_test_nothing_is_refused(place: Place) -> None:
    """A program of another user finds no simulated runtime, and says so at best."""
    with pytest.raises(ConfigurationError, match="write sudo before quiesce exec"):
        place.found("sudo", "-E", "python3")


def test_a_long_text_is_looked_at_so_far(place: Place) -> None:
    assert place.found("timeout", "x " * 1990 + "own/bin/python") == {place.own}
    assert place.found("timeout", "x " * 5000 + "own/bin/python") == set()


def test_what_words_set_is_told(place: Place) -> None:
    command = read_command(["env", "PYTHONPATH=/a:$PATH", "python3"], place.environment)
    assert command.environment["PYTHONPATH"] == f"/a:{place.folder / 'bin'}"


def test_a_launcher_prefers_the_interpreter_of_a_project(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    project = place.file("project/.venv/bin/python", "\x7fELF")
    (place.folder / "project" / "deep").mkdir()
    monkeypatch.chdir(place.folder / "project" / "deep")
    place.environment["VIRTUAL_ENV"] = str(place.folder / "own")
    command = read_command(["timeout", "x"], place.environment)
    assert command.interpreters == ()
    assert likely_interpreters(command) == (place.own, project, place.system)
    command = read_command(["timeout", "run", "python3", "x.py"], place.environment)
    assert command.interpreters == (place.system, place.own, project)
    assert read_command(["python3", "x.py"], place.environment).interpreters == (place.system,)
