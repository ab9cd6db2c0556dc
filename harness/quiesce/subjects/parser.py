"""From the text of a ``subject.toml`` to a :class:`~quiesce.subjects.manifest.Subject`.

Tables are read key by key: every surprise is an error that names file and key, and what to write.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from quiesce.model.errors import ConfigurationError
from quiesce.model.requests import RequestError, evaluate_size
from quiesce.model.versions import parse_versions
from quiesce.simulator.judge import AtExit
from quiesce.simulator.runtime import SCHEDULES, Simulated, parse_flavour
from quiesce.subjects.manifest import (
    BASE,
    OPERATIONS_DEFAULT,
    Build,
    Expectation,
    Needs,
    PackageKind,
    Packages,
    Program,
    Release,
    Run,
    Subject,
    SubjectKind,
    Variant,
)

_Word = TypeVar("_Word", bound=StrEnum)
_Json = dict[str, object]


class Table:
    """One table of a manifest. Each key is taken once; :meth:`finish` refuses those left over."""

    def __init__(self, value: object, path: Path, where: str = "") -> None:
        self._path: Final = path
        self._where: Final = where
        if not isinstance(value, dict):
            self.refuse(f"{value!r} is no table", f"a table, such as [{where}]")
        self._left: _Json = dict(value)
        self._known: set[str] = set()

    def refuse(self, what: str, instead: str, key: str = "") -> NoReturn:
        """Raise :class:`ConfigurationError`: what is wrong at ``key``, and what to write instead."""
        self.mistake(f"{what}; write {instead}", key)

    def mistake(self, text: str, key: str) -> NoReturn:
        """Raise :class:`ConfigurationError` with a whole sentence about a key."""
        place = self._place(key)
        raise ConfigurationError(f"{self._path}: {place + ': ' if place else ''}{text}")

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def _take(self, key: str) -> object:
        self._known.add(key)
        return self._left.pop(key, None)

    def text(self, key: str, default: str | None = None) -> str:
        """Take a text that is not empty; without a default it is needed."""
        value = self._take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value.strip():
            self.refuse("missing" if value is None else f"{value!r} is no text", f'{key} = "…"', key)
        return value

    def optional_text(self, key: str) -> str | None:
        """Take a text, or None where there is none."""
        self._known.add(key)
        return self.text(key) if key in self else None

    def word(self, key: str, words: type[_Word], default: _Word | None = None) -> _Word:
        """Take one of the words of an enumeration."""
        value = self.text(key, default)
        if value not in list(words):
            self.refuse(f"'{value}' means nothing", " or ".join(f'"{word}"' for word in words), key)
        return words(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """Take true or false."""
        value = self._take(key)
        if value is not None and not isinstance(value, bool):
            self.refuse(f"{value!r} is neither true nor false", f"{key} = true, or leave it out", key)
        return default if value is None else value

    def whole(self, key: str, default: int | None) -> int | None:
        """Take a whole number that is not negative."""
        value = self._take(key)
        if value is None:
            return default
        if type(value) is not int or value < 0:
            self.refuse(f"{value!r} is no whole number from 0", f"{key} = 1000", key)
        return value

    def seconds(self, key: str, default: float) -> float:
        """Take a number of seconds above 0."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            self.refuse(f"{value!r} is no number of seconds above 0", f"{key} = 60", key)
        return float(value)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Take a list of texts; without a default it is needed, and not empty."""
        value = self._take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value) or not value:
            self.refuse("missing" if value is None else f"{value!r} is no list of texts", f'{key} = ["…"]', key)
        return tuple(value)

    def one_or_more(self, key: str) -> tuple[str, ...]:
        """Take a text or a list of texts; there is one at least."""
        value = self._left.get(key)
        return self.texts(key) if isinstance(value, list) else (self.text(key),)

    def lists(self, key: str) -> tuple[tuple[str, ...], ...]:
        """Take a list of lists of texts, or nothing."""
        value = self._take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(_is_words(item) for item in value):
            advice = f'{key} = [["program", "argument"]], a list of words for each command'
            self.refuse(f"{value!r} is no list of commands", advice, key)
        return tuple(tuple(item) for item in value)

    def mapping(self, key: str) -> dict[str, str]:
        """Take a table of texts, or an empty one."""
        value = self._take(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            self.refuse(f"{value!r} is no table of texts", f'{key} = {{ NAME = "…" }}', key)
        return dict(value)

    def table(self, key: str) -> Table | None:
        """Take a table of its own, or None where there is none."""
        value = self._take(key)
        return None if value is None else Table(value, self._path, self._place(key))

    def tables(self, key: str) -> Iterator[Table]:
        """Take a list of tables, each ``[[key]]``."""
        value = self._take(key)
        if value is not None and not isinstance(value, list):
            self.refuse("it is no list of tables", f"[[{self._place(key)}]] above each", key)
        for number, item in enumerate(value or ()):
            yield Table(item, self._path, f"{self._place(key)}[{number}]")

    def named_tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """Take the tables ``[key.NAME]`` by their names."""
        table = self.table(key)
        if table is not None:
            for name in list(table._left):
                yield name, Table(table._left.pop(name), self._path, f"{self._place(key)}.{name}")

    def _place(self, key: str) -> str:
        return ".".join(filter(None, (self._where, key)))

    def finish(self) -> None:
        """Refuse what nobody took."""
        for key in self._left:
            near = difflib.get_close_matches(key, self._known, n=1) or sorted(self._known)
            self.refuse("unknown key", " or ".join(f"'{name}'" for name in near), key)


def _is_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


MANIFEST: Final = "subject.toml"


def read_manifest(path: Path) -> Subject:
    """Return what a manifest says. Raises :class:`ConfigurationError`, with the file and the key."""
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        page = "docs/reference/subject_manifest.md"
        raise ConfigurationError(f"{path}: not a TOML file: {error}; see {page} for one") from None
    table = Table(value, path)
    folder = path.resolve().parent
    generated = table.table("generated")
    operations = seed = trials_max = None
    if generated is not None:
        operations, seed = generated.whole("operations", None), generated.whole("seed", None)
        trials_max = generated.whole("trials", None)
        generated.finish()
    variants = (Variant(BASE), *_variants(table))
    subject = Subject(
        name="/".join(folder.parts[-2:]),
        folder=folder,
        title=table.text("title"),
        upstream=_upstream(table),
        kind=table.word("kind", SubjectKind, SubjectKind.REAL),
        cases=table.texts("cases", ()),
        simulated=_flavour(table),
        needs=_needs(table.table("needs")),
        packages=_packages(table.table("packages")),
        build=_build(table.table("build")),
        run=_run(table.table("run")),
        programs=tuple(_program(each) for each in table.tables("programs")),
        variants=variants,
        operations=OPERATIONS_DEFAULT if operations is None else operations,
        seed=seed or 0,
        trials_max=trials_max,
        releases=_releases(table, {variant.name for variant in variants}),
    )
    table.finish()
    if subject.run is None and not subject.programs:
        table.refuse("nothing is run", "[run] with the command of a driver program, or [[programs]]")
    if subject.run is not None and not subject.cases:
        table.refuse("missing", 'cases = ["pool/*", "sizes/*"], the cases that the driver program runs', "cases")
    return subject


def _upstream(table: Table) -> tuple[str, ...]:
    numbers = table.text("upstream")
    return tuple(number.strip() for number in numbers.split(","))


def _flavour(table: Table) -> Simulated | None:
    text = table.optional_text("simulated")
    if text is None:
        return None
    try:
        return parse_flavour(text)
    except ConfigurationError as error:
        table.mistake(str(error), "simulated")


def _needs(table: Table | None) -> Needs:
    if table is None:
        return Needs()
    needs = Needs(
        table.mapping("programs"), table.mapping("files"), table.mapping("variables"), table.text("python", "*")
    )
    try:
        parse_versions(needs.python)
    except ValueError as error:
        table.refuse(str(error), '">=3.11,<3.13"', "python")
    table.finish()
    return needs


def _packages(table: Table | None) -> Packages | None:
    if table is None:
        return None
    kind = table.word("kind", PackageKind)
    if kind is PackageKind.FILES and "dependencies" in table:
        table.refuse("files never bring what they depend on", "what is needed into 'requirements'", "dependencies")
    packages = Packages(kind, table.texts("requirements"), table.flag("dependencies", default=True))
    table.finish()
    return packages


def _build(table: Table | None) -> Build:
    if table is None:
        return Build(())
    build = Build(table.lists("steps"), table.texts("shared", ()), table.mapping("environment"))
    table.finish()
    return build


def _run(table: Table | None) -> Run | None:
    if table is None:
        return None
    run = Run(
        table.texts("command"),
        table.mapping("environment"),
        table.seconds("watchdog_seconds", 60.0),
        _schedule(table),
    )
    table.finish()
    return run


def _schedule(table: Table) -> str:
    schedule = table.text("schedule", "eager")
    if schedule not in SCHEDULES:
        table.refuse(f"'{schedule}' is no schedule", " or ".join(f'"{word}"' for word in SCHEDULES), "schedule")
    return schedule


def _program(table: Table) -> Program:
    program = Program(
        name=table.text("name"),
        command=table.texts("command"),
        environment=table.mapping("environment"),
        simulated=_flavour(table),
        schedule=_schedule(table),
        capacity_bytes=_capacity(table),
        at_exit=table.word("at_exit", AtExit, AtExit.LOST),
        watchdog_seconds=table.seconds("watchdog_seconds", 60.0),
    )
    table.finish()
    return program


def _capacity(table: Table) -> int | None:
    text = table.optional_text("capacity")
    try:
        return None if text is None else evaluate_size(text, {})
    except RequestError as error:
        table.refuse(str(error), 'capacity = "1GiB"', "capacity")


def _variants(table: Table) -> tuple[Variant, ...]:
    variants = []
    for name, each in table.named_tables("variants"):
        if name == BASE:
            each.refuse("that is the driver without a variant's arguments", "another name")
        cases = each.texts("cases") if "cases" in each else None
        variants.append(Variant(name, each.texts("arguments"), cases, each.whole("operations", None)))
        each.finish()
    return tuple(variants)


def _releases(table: Table, variants: set[str]) -> tuple[Release, ...]:
    several = [_several(each, variants) for each in table.tables("expect")]
    releases: list[Release] = []
    for each in table.tables("versions"):
        version = each.text("version")
        if any(version == other.version for other in releases):
            each.refuse(f"'{version}' is listed twice", "each version once", "version")
        shared = [
            expectation
            for versions, expectations in several
            for expectation in expectations
            if not versions or version in versions
        ]
        own = [found for expect in each.tables("expect") for found in _expectations(expect, variants)]
        release = Release(
            version=version,
            label=each.text("label", ""),
            simulated=_flavour(each),
            requirements=each.texts("requirements") if "requirements" in each else None,
            is_default=each.flag("default", default=False),
            needs=_needs(each.table("needs")),
            expectations=(*shared, *own),
        )
        each.finish()
        releases.append(release)
    if not releases:
        table.refuse("no release is named", '[[versions]] with version = "1.2.3"', "versions")
    known = {release.version for release in releases}
    for versions, _ in several:
        for version in versions:
            if version not in known:
                table.refuse(f"there is no version '{version}'", "one of those of [[versions]]", "expect.versions")
    return tuple(releases)


def _several(table: Table, variants: set[str]) -> tuple[tuple[str, ...], tuple[Expectation, ...]]:
    """Return what is expected of several releases, and of which: none are all that are listed."""
    versions = table.one_or_more("versions") if "versions" in table else ()
    return versions, _expectations(table, variants)


def _expectations(table: Table, variants: set[str]) -> tuple[Expectation, ...]:
    cases = table.one_or_more("case")
    finds, upstream = table.text("finds"), table.text("upstream")
    chosen = table.one_or_more("variant") if "variant" in table else ()
    for name in chosen:
        if name not in variants:
            known = " or ".join(f'"{variant}"' for variant in sorted(variants))
            table.refuse(f"there is no variant '{name}'", known, "variant")
    table.finish()
    return tuple(Expectation(case, finds, upstream, chosen) for case in cases)
