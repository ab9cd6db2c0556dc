"""A release made ready to run: its packages fetched, its driver built, what stands for each word of its commands."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.errors import ConfigurationError
from quiesce.subjects.commands import perform
from quiesce.subjects.manifest import PackageKind, Release, Subject
from quiesce.subjects.packages import fetch, interpreter_in
from quiesce.subjects.parser import MANIFEST
from quiesce.subjects.storage import digest_of, kept
from quiesce.subjects.tools import interpreter_state, require, states
from quiesce.subjects.words import Places, replace_in_values, replace_words

_NO_SOURCES: Final = frozenset({".md", ".case"})


@dataclass(frozen=True, slots=True)
class Built:
    """A release that is ready to run: what stands for each word, and the environment of everything that it starts."""

    places: Places
    environment: dict[str, str]


def build(subject: Subject, release: Release) -> Built:
    """Fetch and build what is not kept yet.

    Raises :class:`quiesce.errors.BackendUnavailable` where the machine lacks something,
    :class:`quiesce.errors.SubjectNotBuilt` where a command fails, and :class:`ConfigurationError` for a command with
    a word that stands for nothing.
    """
    for needs in (subject.needs, release.needs):
        require(subject.name, needs)
    packages = fetch(subject, release)
    is_environment = subject.packages is not None and subject.packages.kind is PackageKind.ENVIRONMENT
    places = {
        "source": str(subject.folder),
        "version": release.version,
        "python": str(interpreter_in(packages)) if packages and is_environment else sys.executable,
        **({} if packages is None else {"packages": str(packages)}),
    }
    environment = dict(os.environ)
    if is_environment:  # whose interpreter has no quiesce; a driver in Python imports it
        environment["PYTHONPATH"] = str(_quiesce_alone())
        environment.pop("PYTHONHOME", None)
    if subject.build.steps:
        digest = digest_of(_made_of(subject, release, packages))

        def make(folder: Path) -> None:
            _build(subject, {**places, "build": str(folder)}, environment, folder)

        places["build"] = str(kept(f"{subject.name}-{release.version}", digest, make))
    return Built(places, environment)


def _build(subject: Subject, places: Places, environment: dict[str, str], folder: Path) -> None:
    log = folder.with_name("log.txt")
    log.unlink(missing_ok=True)
    changed = {**environment, **replace_in_values(subject.build.environment, places)}
    for step in subject.build.steps:
        perform(replace_words(step, places), log, folder, changed)


def _made_of(subject: Subject, release: Release, packages: Path | None) -> Iterator[str]:
    """Yield all that a build depends on; what the manifest expects is not among it."""
    yield repr((subject.build, release.version, packages, interpreter_state()))
    yield from states(subject.needs)
    yield from states(release.needs)
    for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "RUSTFLAGS"):
        yield f"{name}={os.environ.get(name, '')}"
    for path in _sources(subject):
        yield str(path)
        yield digest_of([path.read_bytes().decode("latin-1")])


def _sources(subject: Subject) -> Iterator[Path]:
    shared = [subject.folder / name for name in subject.build.shared]
    for path in shared:
        if not path.exists():
            raise ConfigurationError(f"{subject.folder}: build.shared: there is no '{path}'; write a path from there")
    for root in (subject.folder, *shared):
        files = [root] if root.is_file() else sorted(root.rglob("*"))
        for path in files:
            if path.is_file() and not _is_no_source(path):
                yield path


def _is_no_source(path: Path) -> bool:
    return path.suffix in _NO_SOURCES or path.name == MANIFEST or "__pycache__" in path.parts


def _quiesce_alone() -> Path:
    """Return a folder in which an interpreter finds quiesce, its entry points, and nothing else of this one."""
    package = Path(__file__).resolve().parents[1]
    distribution = importlib.metadata.distribution("quiesce")
    metadata = sorted(Path(str(distribution.locate_file(""))).glob("quiesce-*.dist-info"))

    def make(folder: Path) -> None:
        (folder / "quiesce").symlink_to(package, target_is_directory=True)
        for path in metadata:
            (folder / path.name).symlink_to(path, target_is_directory=True)

    return kept("quiesce", digest_of(map(str, (package, *metadata))), make)
