"""Packages: unpacked, or installed into an environment; the wheels of these tests are written here."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from quiesce.model.errors import SubjectNotBuilt
from quiesce.subjects.build import build, fetch
from quiesce.subjects.parser import read_manifest

Write = Callable[..., Path]

MANIFEST = """
title    = "A package"
upstream = "owner/project#1"
cases    = ["pool/*"]
run      = {{ command = ["{{python}}", "-c", ""] }}
packages = {{ kind = "{kind}", requirements = ["tiny-pool @ {wheel}"] }}
versions = [{{ version = "1.0" }}, {{ version = "2.0" }}]
"""


@pytest.fixture
def wheels(tmp_path: Path) -> str:
    """The address of wheels of a package with a module and a program, for each version."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in ("1.0",):
        information = f"tiny_pool-{version}.dist-info"
        with zipfile.ZipFile(folder / f"tiny_pool-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny_pool.py", f"VERSION = '{version}'\n")
            program = zipfile.ZipInfo("bin/tool")
            program.external_attr = 0o100755 << 16
            wheel.writestr(program, "#!/bin/sh\nexit 0\n")
            wheel.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: tiny-pool\nVersion: {version}\n")
            wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{information}/RECORD", "")
    return f"{folder.as_uri()}/tiny_pool-{{version}}-py3-none-any.whl"


def test_files_are_unpacked_once_and_programs_may_run(wheels: str, write_subject: Write) -> None:
    subject = read_manifest(write_subject(MANIFEST.format(kind="files", wheel=wheels)) / "subject.toml")
    folder = fetch(subject, subject.release("1.0"))
    assert folder is not None
    assert (folder / "tiny_pool.py").read_text(encoding="utf-8") == "VERSION = '1.0'\n"
    assert (folder / "bin" / "tool").stat().st_mode & 0o111
    assert not (folder / "tiny_pool.py").stat().st_mode & 0o111
    assert fetch(subject, subject.release("1.0")) == folder


def test_a_package_that_is_not_there_is_said_with_pips_words(wheels: str, write_subject: Write) -> None:
    subject = read_manifest(write_subject(MANIFEST.format(kind="files", wheel=wheels)) / "subject.toml")
    with pytest.raises(SubjectNotBuilt, match="pip") as raised:
        fetch(subject, subject.release("2.0"))
    assert "tiny_pool-2.0" in raised.value.output


def test_an_environment_has_its_packages_and_quiesce_and_nothing_else(wheels: str, write_subject: Write) -> None:
    subject = read_manifest(write_subject(MANIFEST.format(kind="environment", wheel=wheels)) / "subject.toml")
    built = build(subject, subject.release("1.0"))
    code = """
import importlib.util, sys, tiny_pool, quiesce.backends.serving
from quiesce.backends.registry import backend_names
print(tiny_pool.VERSION, "reference" in backend_names(), importlib.util.find_spec("pytest"))
"""
    done = subprocess.run(
        [built.places["python"], "-c", code], env=built.environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("1.0 True None\n", "")
