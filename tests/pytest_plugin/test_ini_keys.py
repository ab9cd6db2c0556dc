"""A mistyped ini key ends the run with one line, wherever it is written."""

from __future__ import annotations

import pytest

from quiesce.pytest_plugin.options import INI_KEYS

from .conftest import Project
from .test_options import error_of

FILES = (
    ("tox.ini", "[pytest]\n{key} = 3\n"),
    ("setup.cfg", "[tool:pytest]\n{key} = 3\n"),
    ("pyproject.toml", '[tool.pytest.ini_options]\n{key} = "3"\n'),
)


@pytest.mark.parametrize(("file", "text"), FILES, ids=[file for file, _ in FILES])
def test_a_mistyped_key_is_refused_in_every_file(project: Project, file: str, text: str) -> None:
    (project.path / "tox.ini").unlink(missing_ok=True)
    project.write(file, text.format(key="quiesce_sed"))
    error = error_of(project.run("cases"))
    assert error == "ERROR: ini key quiesce_sed: quiesce has no key of that name; write quiesce_seed"


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("quiesce_backend", "quiesce_backends"),
        ("quiesce_leak_limits", "quiesce_leak_limit"),
        ("quiesce_worker_device", "quiesce_worker_devices"),
        ("quiesce_", "quiesce_seed"),
    ],
)
def test_the_nearest_key_is_named(project: Project, key: str, nearest: str) -> None:
    error = error_of(project.run("-o", f"{key}=3"))
    assert error == f"ERROR: ini key {key}: quiesce has no key of that name; write {nearest}"


def test_every_key_that_is_declared_is_known(project: Project, pytestconfig: pytest.Config) -> None:
    for key in INI_KEYS:
        pytestconfig.getini(key)
    help_text = project.run("--help").stdout.str()
    declared = {word.rstrip(":") for word in help_text.split() if word.startswith("quiesce_")}
    assert {key for key in INI_KEYS if key in help_text} == set(INI_KEYS)
    assert {key for key in declared if key.isidentifier()} <= set(INI_KEYS)


def test_a_key_of_somebody_else_is_no_concern(project: Project) -> None:
    project.write("tox.ini", "[pytest]\ntestpaths = cases\n[quiesce_things]\nquiesce_sed = 3\n")
    project.run("--quiesce-backend=host").assert_outcomes(passed=1)
