"""What a command starts, as far as its words tell: programs, and Python interpreters.

Many commands start with another program: ``env A=1 python``, ``timeout 10 python``, ``gdb --args ./program``, a
script that ends with ``exec "$@"``, ``bash -c 'python x.py'``. So every word is looked at, and the text of a shell's
command or script. A word too many does no harm: a program that needs no GPU vendor's library adds nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.errors import ConfigurationError
from quiesce.simulator.clients import find_program, interpreter_of, is_elf, is_interpreter, named_in_first_line

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

    Raises :class:`quiesce.errors.ConfigurationError` where the first names no program, or one that keeps the variables
    from its program through which that finds the simulated runtime.
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
    with path.open("rb") as opened:
        first = opened.readline(512)
    return first.startswith(b"#!") and any(map(_is_shell, map(Path, os.fsdecode(first[2:]).split())))


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
