"""A virtual environment for each list of requirements, made once and used again while the list stays the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.clients.rows import Row

FOLDER: Final = os.environ.get("QUIESCE_CLIENTS", "")
"""Where environments are kept; without it nothing is downloaded and the rows are skipped."""
_MADE: Final = "made"


class NotInstallable(Exception):
    """The packages of a row can't be installed here."""


def find_python(first: tuple[int, ...], last: tuple[int, ...]) -> str:
    """Return an interpreter in a range that packages have wheels for: this one if it is in the range."""
    if first <= sys.version_info[:2] <= last:
        return str(getattr(sys, "_base_executable", sys.executable))  # the same in each environment of tox
    names = [f"python{last[0]}.{minor}" for minor in range(last[1], first[1] - 1, -1)]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise NotInstallable(f"it needs one of {', '.join(names)} on the path")
    return found


def python_of(row: Row) -> Path:
    """Return the interpreter of the row's environment, which is made if it is not there."""
    if row.system:
        return _system_python(row)
    options = ("--only-binary", ":all:", *(("--no-deps",) if row.alone else ()))
    return made_environment(row.package, (*options, *row.requirements), *row.python)


def _system_python(row: Row) -> Path:
    asked = ["dpkg-query", "--show", "--showformat", "${Version}", row.package]
    has_dpkg = shutil.which(asked[0]) is not None
    version = subprocess.run(asked, capture_output=True, text=True, check=False).stdout if has_dpkg else ""
    if not version.startswith(row.version):
        raise NotInstallable(f"it needs {row.package} {row.version} of Debian: apt-get install {row.package}")
    return Path("/usr/bin/python3")


def made_environment(name: str, packages: tuple[str, ...], first: tuple[int, ...], last: tuple[int, ...]) -> Path:
    """Return the interpreter of an environment with these packages, which is made if it is not there."""
    base = find_python(first, last)
    text = "\n".join((base, *packages))
    folder = Path(FOLDER) / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / _MADE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run([base, "-m", "venv", "--without-pip", str(folder)])
        install = ["install", "--quiet", *packages]
        _run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), *install])
        (folder / _MADE).write_text(text, encoding="utf-8")
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise NotInstallable("; ".join(lines))
