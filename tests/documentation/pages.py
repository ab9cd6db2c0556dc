"""What a page of the documentation shows, in its order: files, and commands with their outputs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = (
    *("quiesce", "pytest", "python", "python3", "pip", "pipx", "uv", "conda", "tox", "valgrind", "git", "cd", "export"),
    *(
        "cc",
        "gcc",
        "clang",
        "c++",
        "g++",
        "make",
        "cmake",
        "ctest",
        "cargo",
        "cat",
        "curl",
        "docker",
        "sudo",
        "apt-get",
    ),
)
"""A line of a block that begins with one of these is a command, as is one that begins with `$ `."""

_ASSIGNMENTS: Final = r"(?:[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s\"'])* +)*"
_COMMAND: Final = re.compile(rf"{_ASSIGNMENTS}(?:{'|'.join(map(re.escape, PROGRAMS))}|\./[\w.-]+)(?=\s|\Z)")
_SHELLS: Final = ("sh", "bash", "shell", "console")
_FILE_NAME: Final = re.compile(r"`(?P<name>[\w.-][\w./-]*\.\w+)`\)?:?\Z")
_COMMENT: Final = re.compile(r"\s+#\s.*\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of code as a page shows them, without their indentation."""

    line: int
    language: str
    lines: tuple[str, ...]
    introduction: str
    """The last line of prose before it."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file that a page shows whole."""

    line: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a page shows, and the lines of its output that it shows."""

    line: int
    text: str
    comment: str
    output: tuple[str, ...]


def documents() -> tuple[Path, ...]:
    """Return README and every page of the documentation."""
    return (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def _fence(line: str) -> re.Match[str] | None:
    return re.match(r" *(`{3,}|~{3,})([\w+-]*)", line)


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of code of a page, fenced or indented."""
    lines = text.splitlines()
    introduction, number = "", 0
    while number < len(lines):
        fence = _fence(lines[number])
        if fence:
            end = next((n for n in range(number + 1, len(lines)) if lines[n].strip() == fence[1]), len(lines))
            yield _block(number + 2, fence[2], lines[number + 1 : end], introduction)
            introduction, number = "", end + 1
        elif lines[number].startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield _block(number + 1, "", lines[number:end], introduction)
            introduction, number = "", end
        else:
            introduction = lines[number].strip() or introduction
            number += 1


def _block(line: int, language: str, lines: list[str], introduction: str) -> Block:
    text = textwrap.dedent("\n".join(lines)).rstrip("\n")
    return Block(line, language, tuple(text.split("\n")), introduction)


def _is_of_commands(block: Block) -> bool:
    first = next((line for line in block.lines if line.strip() and not line.startswith("#")), "")
    unnamed = block.language == "" and bool(first.startswith("$ ") or _COMMAND.match(first))
    return unnamed or block.language in _SHELLS


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a block; a line that ends with a backslash goes on in the next one."""
    if not _is_of_commands(block):
        return
    session = any(line.startswith("$ ") for line in block.lines)
    starts = [number for number in range(len(block.lines)) if _begins(block, number, session=session)]
    for start, following in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        end = start + 1
        while end < following and block.lines[end - 1].endswith("\\"):
            end += 1
        parts = (line.strip().removesuffix("\\").strip() for line in block.lines[start:end])
        whole = " ".join(parts).removeprefix("$ ")
        comment = _COMMENT.search(whole)
        output = block.lines[end:following] if session else ()
        text = _COMMENT.sub("", whole)
        yield Command(block.line + start, text, comment[0].strip() if comment else "", _without_ends(output))


def _begins(block: Block, number: int, *, session: bool) -> bool:
    line = block.lines[number]
    if number and block.lines[number - 1].endswith("\\"):
        return False
    return line.startswith("$ ") if session else bool(line.strip()) and not line.startswith("#")


def _without_ends(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the empty lines before and after an output."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else ()


def shown(text: str) -> Iterator[ShownFile | Command]:
    """Yield the files and commands of a page in their order."""
    for block in blocks(text):
        if _is_of_commands(block):
            yield from commands(block)
        elif name := _FILE_NAME.search(block.introduction):
            yield ShownFile(block.line, name["name"], "\n".join(block.lines) + "\n")
