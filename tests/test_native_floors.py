"""Who includes whom in the C sources of the simulated runtime: a folder is a floor, and includes run down.

ARCHITECTURE.md lists the floors of ``simulator/native``, bottom to top. A file includes its own floor and those that
stand above it in that table. Two files never include each other; a header and the source of its name count as one.
``simulator/audit`` is a library of its own, which shares no file with the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.test_architecture import circles_of

from quiesce.simulator.runtime.build import AUDIT_SOURCES, SOURCES

ARCHITECTURE: Final = Path(__file__).resolve().parent.parent / "ARCHITECTURE.md"
HEADING: Final = "## The floors of the simulated runtime, bottom to top"
SUFFIXES: Final = frozenset({".c", ".h", ".inc"})
INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*(?P<mark>["<]?)(?P<name>[^">\n]*)')


def listed_floors() -> dict[str, str]:
    """Return the floors by the table of ARCHITECTURE.md, bottom to top, each with its purpose."""
    section = ARCHITECTURE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)/` \| (.+) \|$", section, re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Include:
    """One include of a file, both named by their paths below the folder of the sources."""

    file: str
    line: int
    mark: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: #include {self.mark}{self.name}{self.mark.replace('<', '>')}"


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def includes_of(folder: Path) -> Iterator[Include]:
    """Yield every include below a folder, those of the C library and of the system as well."""
    for path in _files(folder):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            found = INCLUDE.match(line)
            if found:
                yield Include(path.relative_to(folder).as_posix(), number, found["mark"], found["name"])


def _wrong_include(include: Include, folder: Path, floors: Sequence[str]) -> str | None:
    if include.mark == "<":
        return f"{include}: write it in quotes" if (folder / include.name).is_file() else None
    if include.mark != '"':
        return f"{include}: write the name of a file"
    if not _is_placed(include.name, floors) or not (folder / include.name).is_file():
        return f"{include}: no such file on a floor; write its path below {folder.name}/"
    own, other = include.file.partition("/")[0], include.name.partition("/")[0]
    if own in floors and floors.index(other) > floors.index(own):
        return f"{include}: '{own}' may not include '{other}', which is a floor above it"
    return None


def _is_placed(name: str, floors: Sequence[str]) -> bool:
    parts = name.split("/")
    return len(parts) == 2 and parts[0] in floors


def _graph(folder: Path) -> dict[str, set[str]]:
    """Return for each file, without its suffix, those that it includes; its own header is itself."""
    graph: dict[str, set[str]] = {path.relative_to(folder).with_suffix("").as_posix(): set() for path in _files(folder)}
    for include in includes_of(folder):
        own, other = (str(Path(name).with_suffix("")) for name in (include.file, include.name))
        if other != own and other in graph:
            graph[own].add(other)
    return graph


def complaints_of(folder: Path, floors: Sequence[str]) -> list[str]:
    """Return what is wrong with the sources below a folder: files outside the floors, wrong includes, circles."""
    names = [path.relative_to(folder).as_posix() for path in _files(folder)]
    complaints = [f"{name}: lies on no floor of {', '.join(floors)}" for name in names if not _is_placed(name, floors)]
    complaints += [f"{name}: is no C source" for name in names if Path(name).suffix not in SUFFIXES]
    complaints += [wrong for include in includes_of(folder) if (wrong := _wrong_include(include, folder, floors))]
    return complaints + [f"include each other: {', '.join(circle)}" for circle in circles_of(_graph(folder))]


def test_includes_run_down() -> None:
    complaints = complaints_of(SOURCES, list(listed_floors()))
    assert not complaints, "\n".join(complaints)


def test_every_floor_has_files() -> None:
    assert sorted(listed_floors()) == sorted(path.name for path in SOURCES.iterdir())
    assert len(list(includes_of(SOURCES))) > len(_files(SOURCES)) > 100, "hardly any include was seen"


def strangers_of(folder: Path) -> list[str]:
    """Return the includes in quotes of a folder without floors that name no file of its own."""
    own = {path.name for path in _files(folder)}
    return [str(include) for include in includes_of(folder) if include.mark != "<" and include.name not in own]


def test_the_audit_includes_its_own_files_only() -> None:
    assert strangers_of(AUDIT_SOURCES) == []
    assert circles_of(_graph(AUDIT_SOURCES)) == []


@pytest.mark.parametrize("name", ["../native/machine/status.h", "machine/status.h", "status.h"])
def test_an_include_of_a_stranger_is_seen(name: str, tmp_path: Path) -> None:
    _write(tmp_path, {"run.h": "#include <stddef.h>\n", "run.c": f'#include "run.h"\n#include "{name}"\n'})
    assert strangers_of(tmp_path) == [f'run.c:2: #include "{name}"']


FLOORS: Final = ("low", "high")
SOUND: Final = {
    "low/a.h": "#include <stdint.h>\n",
    "low/a.c": '#include "low/a.h"\n#include <string.h>\n',
    "high/b.c": '#include "low/a.h"\n#include "high/b.inc"\n',
    "high/b.inc": "",
}


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"low/c.c": '#include "high/b.inc"\n'}, "low/c.c:1: #include \"high/b.inc\": 'low' may not include 'high'"),
        ({"low/c.inc": '\n  # include "high/b.inc"\n'}, "low/c.inc:2: "),
        ({"middle/c.h": ""}, "middle/c.h: lies on no floor of low, high"),
        ({"c.h": ""}, "c.h: lies on no floor of low, high"),
        ({"low/deep/c.h": ""}, "low/deep/c.h: lies on no floor of low, high"),
        ({"low/notes.txt": ""}, "low/notes.txt: is no C source"),
        ({"low/c.c": '#include "a.h"\n'}, 'low/c.c:1: #include "a.h": no such file'),
        ({"low/c.c": '#include "../audit/run.h"\n'}, '#include "../audit/run.h": no such file'),
        ({"low/c.c": '#include "low/../low/a.h"\n'}, "no such file"),
        ({"low/c.c": "#include HEADER\n"}, "low/c.c:1: #include HEADER: write the name of a file"),
        ({"low/c.c": "#include <low/a.h>\n"}, "write it in quotes"),
        ({"low/c.h": "", "low/a.c": '#include "low/c.h"\n', "low/c.c": '#include "low/a.h"\n'}, "low/a, low/c"),
    ],
)
def test_a_wrong_include_is_seen(files: Mapping[str, str], complaint: str, tmp_path: Path) -> None:
    _write(tmp_path / "native", {**SOUND, **files})
    _write(tmp_path / "audit", {"run.h": ""})
    complaints = complaints_of(tmp_path / "native", FLOORS)
    assert len(complaints) == 1
    assert complaint in complaints[0]


def test_includes_that_run_down_are_let_be(tmp_path: Path) -> None:
    _write(tmp_path, SOUND)
    assert complaints_of(tmp_path, FLOORS) == []
