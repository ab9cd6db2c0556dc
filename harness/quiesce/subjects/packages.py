"""Packages of a release, from the Python registry through pip, each set of them kept in the cache."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from quiesce.errors import BackendUnavailable, SubjectNotBuilt
from quiesce.subjects.commands import perform
from quiesce.subjects.manifest import PackageKind, Packages, Release, Subject
from quiesce.subjects.storage import digest_of, kept
from quiesce.subjects.tools import interpreter_state
from quiesce.subjects.words import replace_words


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
