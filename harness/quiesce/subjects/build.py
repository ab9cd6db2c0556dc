"""A release made ready to run: the tools of the machine, its packages, its driver, and words of its commands.

Packages come from the Python registry through pip; each set of them is kept in the cache.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.model.errors import BackendUnavailable, ConfigurationError, SubjectNotBuilt
from quiesce.model.versions import parse_versions
from quiesce.subjects.commands import Places, perform, replace_in_values, replace_words
from quiesce.subjects.manifest import Needs, PackageKind, Packages, Release, Subject
from quiesce.subjects.parser import MANIFEST
from quiesce.subjects.storage import digest_of, kept


def require(subject: str, needs: Needs) -> None:
    """Raise :class:`BackendUnavailable`, which says what to install, where this machine lacks something."""
    for program, remedy in needs.programs.items():
        if shutil.which(program) is None:
            raise BackendUnavailable(subject, f"there is no program '{program}'", remedy)
    for file, remedy in needs.files.items():
        if not Path(file).exists():
            raise BackendUnavailable(subject, f"there is no '{file}'", remedy)
    for variable, remedy in needs.variables.items():
        if not os.environ.get(variable):
            raise BackendUnavailable(subject, f"the environment variable '{variable}' is not set", remedy)
    if platform.python_version() not in parse_versions(needs.python):
        here = platform.python_version()
        remedy = f"run quiesce with a Python of {needs.python}, such as tox's environment 'subjects'"
        raise BackendUnavailable(subject, f"it needs Python {needs.python}, and this is {here}", remedy)


def states(needs: Needs) -> Iterator[str]:
    """Yield what a build depends on beyond its sources: the versions of programs, times of files, variables."""
    for program in needs.programs:
        yield f"{program} {shutil.which(program)} {_version(program)}"
    for file in needs.files:
        seen = Path(file).stat()
        yield f"{file} {seen.st_mtime_ns} {seen.st_size}"
    for variable in needs.variables:
        yield f"{variable}={os.environ.get(variable, '')}"


def interpreter_state() -> str:
    """Return what packages for this interpreter depend on."""
    return f"{sys.base_prefix} {platform.python_version()} {sys.platform} {platform.machine()}"


def _version(program: str) -> str:
    """Return what a program says to ``--version``; one that says nothing is known by its file alone."""
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        asked = subprocess.run(  # noqa: S603 - a list, no shell
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        seen = Path(path).stat()
        return f"{seen.st_mtime_ns} {seen.st_size}"
    return asked.stdout.decode(errors="replace")


def fetch(subject: Subject, release: Release) -> Path | None:
    """Return the folder with the packages of a release, or None for a subject without any.

    Raises :class:`SubjectNotBuilt` where pip fails, and :class:`BackendUnavailable` where there is no pip.
    """
    packages = subject.packages
    if packages is None:
        return None
    wanted = packages.requirements if release.requirements is None else release.requirements
    requirements = replace_words(wanted, {"version": release.version})
    digest = digest_of((packages.kind, str(packages.dependencies), interpreter_state(), *requirements))

    def make(folder: Path) -> None:
        if packages.kind is PackageKind.FILES:
            _unpack(subject.name, requirements, folder)
        else:
            _make_environment(subject.name, packages, requirements, folder)

    return kept(f"packages-{subject.name}-{release.version}", digest, make)


def interpreter_in(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _unpack(subject: str, requirements: Sequence[str], folder: Path) -> None:
    log, wheels = folder.with_name("log.txt"), folder.with_name("wheels")
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir()
    words = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(wheels)]
    _pip(subject, [*words, *requirements], log, folder)
    for wheel in sorted(wheels.iterdir()):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)  # which keeps members below the folder
            _allow_execution(archive, folder)
    shutil.rmtree(wheels)


def _allow_execution(archive: zipfile.ZipFile, folder: Path) -> None:
    """Give programs the permission to run, which ZipFile drops: a compiler comes in wheels, too."""
    for member in archive.infolist():
        mode = member.external_attr >> 16
        if mode & 0o111 and not member.is_dir():
            path = folder / member.filename
            path.chmod(path.stat().st_mode | 0o111)


def _make_environment(subject: str, packages: Packages, requirements: Sequence[str], folder: Path) -> None:
    log = folder.with_name("log.txt")
    perform([sys.executable, "-m", "venv", "--without-pip", str(folder)], log, folder, os.environ)
    words = ["--python", str(interpreter_in(folder)), "install", "--quiet"]
    words += [] if packages.dependencies else ["--no-deps"]
    _pip(subject, [*words, *requirements], log, folder)


def _pip(subject: str, words: Sequence[str], log: Path, folder: Path) -> None:
    """Run this interpreter's pip, also for another one."""
    try:
        perform(
            [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *words], log, folder, os.environ
        )
    except SubjectNotBuilt as error:
        if "No module named pip" not in error.output:
            raise
        remedy = f"{sys.executable} -m ensurepip"
        raise BackendUnavailable(subject, "this Python has no pip, which fetches packages", remedy) from None


_NO_SOURCES: Final = frozenset({".md", ".case"})


@dataclass(frozen=True, slots=True)
class Built:
    """A release that is ready to run: what stands for each word, and the environment of everything that it starts."""

    places: Places
    environment: dict[str, str]


def build(subject: Subject, release: Release) -> Built:
    """Fetch and build what is not kept yet.

    Raises :class:`BackendUnavailable` where the machine lacks something,
    :class:`SubjectNotBuilt` where a command fails, and :class:`ConfigurationError` for a command
    with
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
