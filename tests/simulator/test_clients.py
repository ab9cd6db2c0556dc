"""What is about to run: programs, scripts, launchers and shells are told apart, and folders of packages found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.simulator.runtime.clients import find_program, interpreter_of, package_folders

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux")


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    """A virtual environment's skeleton; its interpreter begins as one does."""
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text("home = elsewhere\n")
    (tmp_path / "bin").mkdir()
    made = tmp_path / "bin" / "python3.11"
    made.write_bytes(b"\x7fELF")
    made.chmod(0o755)
    return made


def script(path: Path, first_line: str) -> Path:
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


def test_an_interpreter_is_its_own(interpreter: Path) -> None:
    assert interpreter_of(interpreter, {}) == interpreter


@pytest.mark.parametrize("first_line", ["#!{}", "#! {} -I", "#!/usr/bin/env {}"])
def test_a_scripts_interpreter_is_read_from_its_first_line(tmp_path: Path, interpreter: Path, first_line: str) -> None:
    assert interpreter_of(script(tmp_path / "script", first_line.format(interpreter)), {}) == interpreter


def test_a_name_in_the_first_line_is_looked_up_where_the_program_will(tmp_path: Path, interpreter: Path) -> None:
    named = script(tmp_path / "script", "#!/usr/bin/env python3.11")
    assert interpreter_of(named, {"PATH": str(interpreter.parent)}) == interpreter


def test_a_shell_may_start_the_interpreter_that_it_finds(tmp_path: Path, interpreter: Path) -> None:
    (interpreter.parent / "python3").symlink_to(interpreter)
    shell = script(tmp_path / "script", "#!/bin/sh")
    assert interpreter_of(shell, {"PATH": str(interpreter.parent)}) == interpreter.parent / "python3"
    assert interpreter_of(shell, {"PATH": str(tmp_path)}) is None


def test_a_launcher_is_asked_what_it_launches(tmp_path: Path, interpreter: Path) -> None:
    launcher = script(tmp_path / "python", f"#!/bin/sh\necho {interpreter}")
    assert interpreter_of(launcher, {}) == interpreter
    launcher.write_text("#!/bin/sh\nexit 127\n")
    assert interpreter_of(launcher, {}) is None


def test_packages_are_below_a_virtual_environments_own_prefix(tmp_path: Path, interpreter: Path) -> None:
    assert package_folders(interpreter, {}) == (tmp_path / "lib" / "python3.11" / "site-packages",)


def test_packages_are_found_on_pythons_path_and_where_they_are_edited(tmp_path: Path, interpreter: Path) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (tmp_path / "edited").mkdir()
    (site / "edited.pth").write_text(f"# a comment\nimport os\n{tmp_path / 'edited'}\n{tmp_path / 'gone'}\n")
    assert package_folders(interpreter, {"PYTHONPATH": "/one:"}) == (site, Path("/one"), tmp_path / "edited")


def test_a_program_that_is_not_there_is_said() -> None:
    with pytest.raises(ConfigurationError, match="there is no program 'no-such-program'"):
        find_program(["no-such-program"], {"PATH": "/nowhere"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["./a b.py", "1"],
            "./a b.py is not executable; write: quiesce exec -- python './a b.py' 1, or chmod +x './a b.py'",
        ),
        (["./run.sh"], "./run.sh is not executable; write: quiesce exec -- sh ./run.sh, or chmod +x ./run.sh"),
        (["./data"], "./data is not executable; write: chmod +x ./data"),
        (["data"], "data is not executable; write: chmod +x data"),
        (["tool", "-v"], "'tool' is not on the path (PATH); write: quiesce exec -- ./tool -v"),
        (["./folder"], "'./folder' is a folder; write the program to run"),
        (["sh a b", "c"], "there is no program 'sh a b'; without the quotes: quiesce exec -- sh a b c"),
        (["none a"], "there is no program 'none a'; write its path, or install it"),
    ],
)
def test_what_is_no_program_is_answered_with_what_to_write(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("a b.py", "run.sh", "data", "tool"):
        (tmp_path / name).touch()
    (tmp_path / "tool").chmod(0o755)
    with pytest.raises(ConfigurationError) as raised:
        find_program(words, {"PATH": os.environ["PATH"]})
    assert str(raised.value) == said
