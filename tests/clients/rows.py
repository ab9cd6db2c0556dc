"""The rows of the matrix of clients, and which of them a run asks for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent
MARK: Final = "# the fault"
FIRST_USE: Final = "# the first use"
_ANY_PYTHON: Final = ((3,), (4,))
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(.*)")


@dataclass(frozen=True, slots=True)
class Row:
    """One release of one package, and what has to come of its two programs."""

    identifier: str
    client: str
    requirements: tuple[str, ...]
    python: tuple[tuple[int, ...], tuple[int, ...]]
    programs: str
    rule: str = ""
    flavour: str = ""
    kernels: str = ""
    pools: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    alone: bool = False
    """Whether only the requirements are installed: the packages that these ask for are the vendor's, and large."""
    large: bool = False
    system: bool = False
    """Whether the package is one of Debian's, and not of PyPI: the system's interpreter runs the programs."""
    finds: str = ""
    """The rule that the package itself breaks, also below a correct program."""
    fails: str = ""
    reason: str = ""
    corrected: str = ""
    """The release of the package in which the program that fails here passes."""
    own: tuple[Path, ...] = ()
    """Programs that were given with ``--program``, in place of those of the row."""

    @property
    def package(self) -> str:
        """The name of the package that the row is about."""
        return _parts(self.requirements[0])[0]

    @property
    def version(self) -> str:
        """The release that the row lists, or nothing if it asks for whatever fits."""
        return _parts(self.requirements[0])[1].removeprefix("==")

    @property
    def in_correction(self) -> Row:
        """The same row with the release that corrects what its program shows, which finds nothing there."""
        first = f"{self.package}=={self.corrected}"
        return replace(self, requirements=(first, *self.requirements[1:]), rule="", finds="", fails="", corrected="")

    def program(self, kind: str) -> Path | None:
        """Return the program that is 'correct' or 'faulty'; None: no such program was given with ``--program``."""
        if not self.own:
            return FOLDER / "programs" / f"{self.programs}_{kind}.py"
        return next((path for path in self.own if bool(marked_lines(path)) == (kind == "faulty")), None)


def marked_lines(program: Path, *marks: str) -> list[int]:
    """Return the lines of the fault, or those with other marks; there are none in a correct program."""
    lines = program.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith(marks or MARK)]


def _parts(requirement: str) -> tuple[str, str]:
    found = _REQUIREMENT.fullmatch(requirement)
    if found is None:
        raise ValueError(f"{requirement!r} is not a package, or a package and a version: cupy-cuda12x==14.1.0")
    return found[1], found[2]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _row(identifier: str, fields: dict[str, Any]) -> Row:
    first, last = fields.pop("python")
    requirements = tuple(fields.pop("requirements"))
    return Row(identifier, requirements=requirements, python=(_numbers(first), _numbers(last)), **fields)


def read_rows() -> tuple[Row, ...]:
    """Return all rows of rows.toml."""
    read = tomllib.loads((FOLDER / "rows.toml").read_text(encoding="utf-8"))
    return tuple(_row(identifier, fields) for identifier, fields in read.items())


def chosen_rows(words: Sequence[str], programs: Sequence[Path] = ()) -> list[Row]:
    """Return the rows that ``--client`` names: identifiers, packages, or packages with a version that no row has.

    With ``programs``, these run instead of a row's own, and packages need no row.
    """
    rows = read_rows()
    if not programs:
        return [row for word in words for row in _named(word, rows)] or [row for row in rows if not row.large]
    if len(words) != 1:
        raise ValueError("--program needs one --client: the packages that the program imports, such as 'xgboost numpy'")
    if missing := [str(path) for path in programs if not path.is_file()]:
        raise ValueError(f"there is no program {', '.join(missing)}")
    try:
        found = _named(words[0], rows)[-1:]
    except _NoRow:
        requirements = tuple(words[0].split())
        found = [Row(words[0], requirements[0], requirements, _ANY_PYTHON, programs="")]
    return [replace(row, own=tuple(programs), rule="", fails="", corrected="") for row in found]


class _NoRow(ValueError):
    """No row is about a package."""


def _named(word: str, rows: tuple[Row, ...]) -> list[Row]:
    same = [row for row in rows if word in (row.identifier, row.package)]
    if same:
        return same
    first, *others = word.split()
    package, version = _parts(first)
    programs = {row.programs: row for row in sorted(rows, key=_by_version) if row.package == package}
    if not programs:
        packages = ", ".join(sorted({row.package for row in rows}))
        raise _NoRow(
            f"no row of rows.toml is about {package!r}. Give a program that uses its device: --client {word!r} "
            f"--program FILE.py. If a line of it ends with {MARK!r}, a finding has to name that line. "
            f"Packages with rows: {packages}"
        )
    wanted = _numbers(version)
    found = []
    for stem in programs:
        releases = sorted((row for row in rows if (row.package, row.programs) == (package, stem)), key=_by_version)
        nearest = [row for row in releases if _numbers(row.version) <= wanted] if version.startswith("==") else releases
        row = (nearest or releases)[-1 if nearest else 0]
        beside = others or row.requirements[1:]
        found.append(
            replace(row, identifier=f"{stem}:{word}", requirements=(first, *beside), large=False, corrected="")
        )
    return found


def _by_version(row: Row) -> tuple[int, ...]:
    return _numbers(row.version)
