"""Who includes and calls whom in the C sources of the simulated runtime: a folder is a floor, and both run down.

ARCHITECTURE.md lists the floors of ``simulator/native``, bottom to top. A file includes its own floor and those that
stand above it in that table, and calls and declares what these define. What a lower floor asks of a higher one stands
in one struct of functions, ``machine/upcalls.h``, of which each higher floor fills its part. Two files never include
each other; a header and the source of its name count as one. ``simulator/audit`` is a library of its own, which shares
no file with the runtime.
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
COMMENT_OR_TEXT: Final = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
DIRECTIVE: Final = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*|__attribute__\(\(.*?\)\)", re.MULTILINE)
CALLED: Final = re.compile(r"(?<!\.)(?<!->)\b(?!sizeof\b|[A-Z][A-Z_]+\b)(\w+)\((?!\*)")
TYPE: Final = re.compile(r"typedef\b|(?:struct|enum|union)(?: \w+)? ?$")
VARIABLES: Final = re.compile(r"(\w+)(?:\[\w*\])*(?=,|$)")
UPCALL: Final = re.compile(r"\bupcalls\.(?P<floor>\w+)(?:\.(?P<name>\w+))?\s*(?P<mark>[=(])")
UPCALLS: Final = re.compile(r"^    struct (\w+)_upcalls \{", re.MULTILINE)


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


@dataclass(slots=True)
class Names:
    """What a C file defines for others, and what it calls and declares, which somebody else may define."""

    defined: set[str]
    used: set[str]


def statements_of(code: str) -> Iterator[tuple[str, bool]]:
    """Yield what stands outside of every function, without what is in braces; True: a function follows."""
    code = DIRECTIVE.sub("", code)
    depth = start = 0
    kept: list[str] = []
    for brace in re.finditer(r"[{};]", code):
        mark = brace.group()
        if not depth:
            kept.append(code[start : brace.start()])
        depth += {"{": 1, "}": -1}.get(mark, 0)
        is_function = kept[-1].rstrip().endswith(")")
        if not depth and (mark == ";" or (mark == "}" and is_function)):
            yield " ".join("".join(kept).split()), mark == "}"
            kept = []
        start = brace.end()


def names_of(text: str) -> Names:
    """Return the names of functions and variables in the text of a C file."""
    code = COMMENT_OR_TEXT.sub("", text)
    names = Names(set(), set(CALLED.findall(code)))
    for statement, is_body in statements_of(code):
        head, *_ = statement.split("=")
        functions = CALLED.findall(head)
        found = functions or ([] if "(" in head or TYPE.match(head) else VARIABLES.findall(head.strip()))
        if statement.startswith("static"):
            names.used.difference_update(functions)
        elif is_body or (not functions and not statement.startswith("extern")):
            names.defined.update(found)
        else:
            names.used.update(found)
    return names


def wrong_calls(folder: Path, floors: Sequence[str]) -> Iterator[str]:
    """Yield what files call or declare that only a floor above them defines."""
    texts = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in _files(folder)}
    height = {name: floors.index(name.partition("/")[0]) for name in texts if _is_placed(name, floors)}
    names = {name: names_of(texts[name]) for name in height}
    homes: dict[str, str] = {}
    for file in sorted(height, key=height.__getitem__, reverse=True):  # of two, the lower one
        homes.update(dict.fromkeys(names[file].defined, file))
    for file, known in names.items():
        for name in sorted(known.used):
            if name in homes and height[homes[name]] > height[file]:
                yield f"{file}: '{name}' is of {homes[name]}, a floor above it: ask for it by machine/upcalls.h"
        for upcall in UPCALL.finditer(COMMENT_OR_TEXT.sub("", texts[file])):
            own, floor = floors[height[file]], upcall["floor"]
            if upcall["mark"] == "=" and own != floor:
                yield f"{file}: '{own}' may not fill the upcalls of '{floor}'"
            if upcall["mark"] == "(" and height[file] >= floors.index(floor):
                yield f"{file}: '{floor}' is no floor above '{own}': call '{upcall['name']}' by its own name"


def complaints_of(folder: Path, floors: Sequence[str]) -> list[str]:
    """Return what is wrong with the sources below a folder: files outside the floors, includes, calls, circles."""
    names = [path.relative_to(folder).as_posix() for path in _files(folder)]
    complaints = [f"{name}: lies on no floor of {', '.join(floors)}" for name in names if not _is_placed(name, floors)]
    complaints += [f"{name}: is no C source" for name in names if Path(name).suffix not in SUFFIXES]
    complaints += [wrong for include in includes_of(folder) if (wrong := _wrong_include(include, folder, floors))]
    complaints += wrong_calls(folder, floors)
    return complaints + [f"include each other: {', '.join(circle)}" for circle in circles_of(_graph(folder))]


def test_includes_and_calls_run_down() -> None:
    complaints = complaints_of(SOURCES, list(listed_floors()))
    assert not complaints, "\n".join(complaints)


def test_every_floor_has_files() -> None:
    assert sorted(listed_floors()) == sorted(path.name for path in SOURCES.iterdir())
    assert len(list(includes_of(SOURCES))) > len(_files(SOURCES)) > 100, "hardly any include was seen"


def test_each_floor_fills_its_upcalls() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in _files(SOURCES)}
    asked = UPCALLS.findall(texts[SOURCES / "machine" / "upcalls.h"])
    assert len(asked) > 2
    found = [(path.parent.name, each["floor"]) for path, text in texts.items() for each in UPCALL.finditer(text)]
    assert {floor for own, floor in found if own == floor} == set(asked)
    assert sum(own != floor for own, floor in found) > 10, "hardly any upcall was seen"


def test_functions_are_seen() -> None:
    known = [names_of(path.read_text(encoding="utf-8")) for path in _files(SOURCES)]
    assert sum(len(each.defined) for each in known) > 1000, "hardly any function was seen"
    assert sum(len(each.used) for each in known) > 3000, "hardly any call was seen"


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
    "high/b.c": (
        '#include "low/a.h"\n#include "high/b.inc"\nstruct level {\n    int height;\n} level;\n'
        "__attribute__((noinline)) unsigned rise(int (*by)(void),\n              int times) {\n    return by();\n}\n"
    ),
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
        (
            {"low/c.c": "void climb(void) {\n    if (rise(NULL, 2)) return;\n}\n"},
            "low/c.c: 'rise' is of high/b.c, a floor",
        ),
        ({"low/c.h": "unsigned rise(int (*by)(void), int times);\n"}, "low/c.h: 'rise' is of high/b.c"),
        ({"low/c.h": "#define CLIMB() \\\n    rise(NULL, 2)\n"}, "low/c.h: 'rise' is of high/b.c"),
        ({"low/c.c": "extern unsigned rise(int (*)(void), int);\nint i(void) { return !&rise; }\n"}, "low/c.c: 'rise'"),
        ({"low/c.h": "extern struct level level;\n"}, "low/c.h: 'level' is of high/b.c"),
        ({"low/c.inc": "static int up(void) { return rise(NULL, 1); }\n"}, "low/c.inc: 'rise' is of high/b.c"),
        (
            {"low/c.c": "void open(void) { upcalls.high = (struct high_upcalls){1}; }\n"},
            "'low' may not fill the upcalls",
        ),
        ({"high/c.c": "void go(void) { upcalls.high.rise(2); }\n"}, "call 'rise' by its own name"),
        ({"high/c.c": "void go(void) { upcalls.low.sink(); }\n"}, "'low' is no floor above 'high'"),
        ({"low/c.h": "", "low/a.c": '#include "low/c.h"\n', "low/c.c": '#include "low/a.h"\n'}, "low/a, low/c"),
    ],
)
def test_what_runs_up_is_seen(files: Mapping[str, str], complaint: str, tmp_path: Path) -> None:
    _write(tmp_path / "native", {**SOUND, **files})
    _write(tmp_path / "audit", {"run.h": ""})
    complaints = complaints_of(tmp_path / "native", FLOORS)
    assert len(complaints) == 1
    assert complaint in complaints[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '// rise(up)\n/* rise(\nup) */\nconst char *text = "rise(\\"up)";\n',
        "static int rise(int by) {\n    return by;\n}\nint stand(void) { return rise(1); }\n",
        "int stand(const struct step *step) { return step->rise(1) + step[0].rise(2); }\n",
        "int stand(void) { return upcalls.high.rise(1); }\n",
    ],
)
def test_what_runs_down_is_let_be(text: str, tmp_path: Path) -> None:
    _write(tmp_path, {**SOUND, "low/c.c": text})
    _write(
        tmp_path, {"high/c.c": "unsigned jump(void) {\n    upcalls.high.rise = rise;\n    return rise(NULL, 3);\n}\n"}
    )
    assert complaints_of(tmp_path, FLOORS) == []
