"""What may load a GPU vendor's library: the programs and Python interpreters that a command starts.

Many commands start with another program: ``env A=1 python``, ``timeout 10 python``, ``gdb --args ./program``, a
script that ends with ``exec "$@"``, ``bash -c 'python x.py'``. So every word is looked at, and the text of a shell's
command or script. A word too many does no harm: a program that needs no GPU vendor's library adds nothing.

An interpreter counts with the extension modules of its environment: an import decides later which are loaded.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.model.errors import ConfigurationError

_PYTHON: Final = re.compile(r"python(\d+(\.\d+)?)?t?$")


def find_program(words: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Return the file that a command runs. Raises :class:`ConfigurationError` where there is none."""
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
    words = shlex.split(_runner_line(program))
    if words and Path(words[0]).name == "env":
        words = words[1:]
    named = shutil.which(words[0], path=environment.get("PATH")) if words else None
    return Path(named) if named and is_interpreter(Path(named)) else None


def _runner_line(script: Path) -> str:
    """Return what a file's first line names after ``#!``; empty for a file that is no script."""
    with script.open("rb") as opened:
        first = opened.readline(512)
    return os.fsdecode(first[2:]).strip() if first.startswith(b"#!") else ""


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


_ASSIGNMENT: Final = re.compile(r"(?:--?[\w-]+=)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_SHELL: Final = re.compile(r"(?:ba|da|z|k|mk|a)?sh")
_SCRIPT_BYTES_MAX: Final = 1 << 18
_OTHER_USERS: Final = frozenset({"sudo", "su", "doas", "pkexec"})
_WORDS_MAX: Final = 2000
"""A long text among the words is more likely to be data."""
_DEPTH_MAX: Final = 4
"""Shell scripts that start each other are followed so far."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and what it may start."""

    program: Path
    """The file that the first word names."""
    programs: tuple[Path, ...]
    """ELF files that are no Python interpreters."""
    interpreters: tuple[Path, ...]
    """Python interpreters that words name, or scripts of theirs."""
    environment: Mapping[str, str]
    """The environment, with what the words set in it."""


def read_command(words: Sequence[str], environment: Mapping[str, str]) -> Command:
    """Look at all words.

    Raises :class:`ConfigurationError` where the first names no program, or one that keeps the variables from its
    program through which that finds the simulated runtime.
    """
    _require_environment(words)
    reader = _Reader(dict(environment))
    program = _absolute(find_program(words, environment))
    reader.add_file(program, _DEPTH_MAX)
    reader.add_words(words[1:], _DEPTH_MAX, of_shell=_is_shell(program))
    interpreters = dict.fromkeys(reader.interpreters)
    if interpreters and program in reader.programs:  # such as uv, which may mean another interpreter by the name
        interpreters |= dict.fromkeys(_of_projects(reader.environment))
    return Command(program, tuple(dict.fromkeys(reader.programs)), tuple(interpreters), reader.environment)


def _require_environment(words: Sequence[str]) -> None:
    name = Path(words[0]).name
    if name in _OTHER_USERS:
        raise ConfigurationError(
            f"{name}, which starts a program as another user, drops the variables through which a program finds the "
            "simulated runtime (LD_AUDIT, LD_LIBRARY_PATH, QUIESCE_SIMULATOR), so that nothing would be tested; write "
            f"{name} before quiesce exec"
        )


def likely_interpreters(command: Command) -> tuple[Path, ...]:
    """Return what a launcher, a shell or ``make`` would start: the interpreter of a project, and that on the path."""
    found = dict.fromkeys(_of_projects(command.environment))
    on_path = interpreter_of(command.program, command.environment)
    return tuple(found | ({} if on_path is None else {on_path: None}))


def installed_for(command: Command) -> tuple[Path, ...]:
    """Return the folders of the packages that a program may import: those of its interpreters."""
    interpreters = command.interpreters or likely_interpreters(command)
    return tuple({folder: None for each in interpreters for folder in package_folders(each, command.environment)})


class _Reader:
    """Collects what words name, in an environment that words change."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.programs: list[Path] = []
        self.interpreters: list[Path] = []
        self._words_left = _WORDS_MAX

    def add_words(self, words: Sequence[str], depth: int, *, of_shell: bool = False) -> None:
        for word in words[: self._words_left]:
            self._words_left -= 1
            assigned = _ASSIGNMENT.fullmatch(word)
            if assigned:
                self.environment[assigned[1]] = self._expanded(assigned[2])
            if depth and ("\n" in word or " " in word):
                self.add_words(_shell_words(word), depth - 1)
                continue
            for path in self._found(self._expanded(word.rpartition("=")[2])):
                self.add_file(path, depth, is_script=of_shell)
                of_shell = _is_shell(path)

    def add_file(self, path: Path, depth: int, *, is_script: bool = False) -> None:
        try:
            if path.name == "activate":  # a virtual environment's
                self.environment["PATH"] = f"{path.parent}:{self.environment.get('PATH', '')}"
            elif is_interpreter(path) or named_in_first_line(path, self.environment) is not None:
                self.interpreters.extend(filter(None, [interpreter_of(path, self.environment)]))
            elif is_elf(path):
                self.programs.append(path)
            elif depth and (is_script or _is_shell_script(path)) and path.stat().st_size <= _SCRIPT_BYTES_MAX:
                text = path.read_text(encoding="utf-8", errors="replace")
                self.add_words(_shell_words(text), depth - 1)
        except OSError:
            pass  # a file that can't be read can't be started

    def _expanded(self, text: str) -> str:
        return _VARIABLE.sub(lambda found: self.environment.get(found[1] or found[2], ""), text)

    def _found(self, word: str) -> Iterator[Path]:
        """Yield the program that a word names on the path, and the file: debuggers and shells take that as well."""
        if word and not word.startswith("-"):
            found = shutil.which(word, path=self.environment.get("PATH")), os.path.isfile(word) and word  # noqa: PTH113
            yield from dict.fromkeys(_absolute(each) for each in found if each)


def _absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - a link stays: a virtual environment's interpreter is one


def _is_shell(program: Path) -> bool:
    return _SHELL.fullmatch(program.name) is not None


def _is_shell_script(path: Path) -> bool:
    return any(map(_is_shell, map(Path, _runner_line(path).split())))


def _shell_words(text: str) -> list[str]:
    """Return the words of a shell's text, comments and operators left out; nearly so where the quoting is not plain."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def _of_projects(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the interpreters that launchers prefer to that on the path: the environment's in use, and the project's."""
    folders = [Path(environment[name]) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if environment.get(name)]
    here = Path.cwd()
    for folder in (*folders, *(parent / ".venv" for parent in (here, *here.parents))):
        interpreter = folder / "bin" / "python"
        if interpreter.exists() and is_elf(interpreter):
            yield interpreter
