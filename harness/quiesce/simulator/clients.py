"""What may load a GPU vendor's library: a program, or a Python interpreter with the packages of its environment.

For an interpreter those are the extension modules of its environment: an import decides later which are loaded.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from quiesce.errors import ConfigurationError

_PYTHON: Final = re.compile(r"python(\d+(\.\d+)?)?t?$")


def find_program(words: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Return the file that a command runs. Raises :class:`quiesce.errors.ConfigurationError` where there is none."""
    found = shutil.which(words[0], path=environment.get("PATH"))
    if found is None:
        raise ConfigurationError(_why_no_program(words, environment))
    return Path(found)


def _why_no_program(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what is wrong with the first word of a command, and what to write instead."""
    word, arguments = words[0], words[1:]
    path = Path(word)
    if path.is_dir():
        return f"'{word}' is a folder; write the program to run"
    if path.is_file():
        runner = _runner_of(path, environment)
        command = f"quiesce exec -- {shlex.join([runner, *words])}, or " if runner else ""
        if os.access(path, os.X_OK):
            return f"'{word}' is not on the path (PATH); write: quiesce exec -- {shlex.join([f'./{word}', *arguments])}"
        return f"{word} is not executable; write: {command}chmod +x {shlex.quote(word)}"
    parts = word.split()
    if len(parts) > 1 and shutil.which(parts[0], path=environment.get("PATH")):
        return f"there is no program '{word}'; without the quotes: quiesce exec -- {shlex.join([*parts, *arguments])}"
    return f"there is no program '{word}'; write its path, or install it"


def _runner_of(script: Path, environment: Mapping[str, str]) -> str:
    """Return the name of the program that runs a script, by the script's name or first line; empty for others."""
    named = named_in_first_line(script, environment)
    if named is not None:
        return named.name
    return {".py": "python", ".sh": "sh"}.get(script.suffix, "")


def is_interpreter(program: Path) -> bool:
    """Say whether a program is named as a Python interpreter is."""
    return _PYTHON.match(program.name) is not None


def is_elf(path: Path) -> bool:
    """Say whether a file begins as ELF files do."""
    with path.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def interpreter_of(program: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the Python interpreter that a program is, that its first line names, or else that it would find."""
    named = program if is_interpreter(program) else named_in_first_line(program, environment)
    if named is None:
        finds = (shutil.which(name, path=environment.get("PATH")) for name in ("python", "python3"))
        named = next(filter(None, map(_path, finds)), None)
    if named is None or is_elf(named):
        return named
    # a launcher, such as pyenv's, which decides by itself
    asked = [str(named), "-S", "-c", "import sys; print(sys.executable)"]
    done = subprocess.run(  # noqa: S603 - a list, no shell
        asked, env=dict(environment), capture_output=True, text=True, check=False
    )
    return _path(done.stdout.strip()) if done.returncode == 0 else None


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def named_in_first_line(program: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the Python interpreter that runs a script, or None for any other file."""
    with program.open("rb") as opened:
        first = opened.readline(512)
    if not first.startswith(b"#!"):
        return None
    words = shlex.split(os.fsdecode(first[2:]).strip())
    if words and Path(words[0]).name == "env":
        words = words[1:]
    named = shutil.which(words[0], path=environment.get("PATH")) if words else None
    return Path(named) if named and is_interpreter(Path(named)) else None


def package_folders(interpreter: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders in which an interpreter finds packages beside its own library, without running it."""
    own = [*_site_folders(interpreter), *map(Path, filter(None, environment.get("PYTHONPATH", "").split(":")))]
    return tuple(dict.fromkeys((*own, *(added for folder in own for added in _added_folders(folder)))))


def _site_folders(interpreter: Path) -> Iterator[Path]:
    """Yield where an environment keeps its packages: a virtual one below its own prefix."""
    for folder in dict.fromkeys((interpreter.parent, interpreter.resolve().parent)):
        prefix = folder.parent
        for library in ("lib", "lib64", "local/lib"):
            for pattern in ("python3*/site-packages", "python3*/dist-packages", "python3/dist-packages"):
                yield from sorted((prefix / library).glob(pattern))
        settings = prefix / "pyvenv.cfg"
        if settings.exists() and "include-system-site-packages = true" not in settings.read_text(encoding="utf-8"):
            return


def _added_folders(folder: Path) -> Iterator[Path]:
    """Yield what the ``.pth`` files of a folder add to the path, as editable installations do."""
    for file in sorted(folder.glob("*.pth")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if line and not line.startswith(("#", "import ", "import\t")) and (added := folder / line).is_dir():
                yield added
