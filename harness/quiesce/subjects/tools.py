"""What a machine must have for a subject, and what exactly it has."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from quiesce.errors import BackendUnavailable
from quiesce.subjects.manifest import Needs
from quiesce.versions import parse_versions


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
