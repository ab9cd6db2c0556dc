"""CuPy's own tests of memory, streams, events and graphs, with the stock wheel on the simulated runtime.

Wheels bring no tests: they are taken from the release's source distribution at run time. ``fixtures/cupy/`` names, for
each release, the tests that cannot pass and why; all others have to, and those on the list must not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest
from tests.suites.sources import unpack_tests

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

from .cupy_wheels import NEEDS_A_WHEEL, RELEASES, WHEEL, Release, release

pytestmark = NEEDS_A_WHEEL
__all__ = ["release"]

LISTS: Final = Path(__file__).resolve().parents[2] / "fixtures" / "cupy"


@dataclass(frozen=True, slots=True)
class OwnTests:
    """What ``fixtures/cupy/`` says of one release."""

    source: str
    folder: str
    files: tuple[str, ...]
    devices: int
    passed: int
    fails: dict[str, str]
    """Why each of the tests that cannot pass cannot."""
    computed: frozenset[str]
    """Those of them that pass where kernels compute."""
    finds: dict[str, str]
    """The rules that the tests themselves break, and how."""


def read_list(path: Path) -> OwnTests:
    listed = tomllib.loads(path.read_text(encoding="utf-8"))
    if "same_as" in listed:
        return read_list(path.with_name(f"{listed['same_as']}.toml"))
    fails = {test: group["because"] for group in listed["cannot_pass"] for test in group["tests"]}
    count = sum(len(group["tests"]) for group in listed["cannot_pass"])
    assert count == len(fails), f"{path}: a test is listed twice"
    computed = {test for group in listed["cannot_pass"] if group.get("computed", False) for test in group["tests"]}
    finds = {each["rule"]: each["because"] for each in listed.get("finds", [])}
    about = (listed["source"], listed["folder"], tuple(listed["files"]), listed["devices"], listed["passed"])
    return OwnTests(*about, fails, frozenset(computed), finds)


@pytest.fixture(scope="module")
def own() -> OwnTests:
    return read_list(LISTS / f"{WHEEL.replace('==', '-')}.toml")


@pytest.fixture(scope="module")
def sources(own: OwnTests, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the release's tests, as its source distribution has them."""
    return unpack_tests(own.source, tmp_path_factory.mktemp("sources"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the tests, by their names for pytest, and the rules that were broken, each once."""

    tests: dict[str, str]
    rules: set[str]


def run_own_tests(release: Release, own: OwnTests, sources: Path, folder: Path, schedule: str, kernels: str) -> Outcome:
    python = [sys.executable, "-m"]
    command = [*python, "quiesce.cli.main", "exec", "--flavour", release.flavour, "--devices", str(own.devices)]
    command += ["--kernels", kernels, "--schedule", schedule, "--report", str(folder / "report"), "--"]
    command += [*python, "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
    command += [f"--junitxml={folder / 'junit.xml'}", *(f"{own.folder}/{file}" for file in own.files)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    environment["CUPY_CACHE_DIR"] = str(folder / "kernels")  # what another run compiled is not taken
    done = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, check=False)
    assert (folder / "junit.xml").exists(), done.stdout + done.stderr
    results = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))["results"]
    rules = {finding["rule"] for result in results for finding in result["findings"]}
    cases = ElementTree.parse(folder / "junit.xml").iter("testcase")
    return Outcome(dict(_outcome(case, own.folder) for case in cases), rules)


def _outcome(case: Any, folder: str) -> tuple[str, str]:
    """Return a test's name, as pytest takes it in ``folder``, and "passed", "failed" or "skipped"."""
    file, inner = case.get("file"), case.get("classname")
    inner = inner[len(file.removesuffix(".py")) + 1 :]
    name = "::".join(part for part in (file.removeprefix(f"{folder}/"), inner, case.get("name")) if part)
    kinds = {child.tag for child in case}
    return name, "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"


@pytest.mark.parametrize(("schedule", "kernels"), [("eager", "off"), ("lazy", "off"), ("lazy", "run")])
def test_every_test_passes_but_for_those_that_are_listed(
    release: Release, own: OwnTests, sources: Path, tmp_path: Path, schedule: str, kernels: str
) -> None:
    computed = own.computed if kernels == "run" else frozenset()
    if kernels == "run" and not (own.computed and kernels_can_run()):
        pytest.skip("it needs kernels that can compute: a wheel for CUDA, and quiesce[kernels]")
    outcome = run_own_tests(release, own, sources, tmp_path, schedule, kernels)
    failed = {name for name, result in outcome.tests.items() if result == "failed"}
    expected = own.fails.keys() - computed
    assert sorted(failed - expected) == [], "these should pass: correct the simulated runtime, or list them"
    assert sorted(expected - failed) == [], "these do not fail any more: take them off the list"
    assert Counter(outcome.tests.values())["passed"] == own.passed + len(computed)
    assert outcome.rules == own.finds.keys()


def test_every_list_belongs_to_a_wheel_and_gives_reasons() -> None:
    assert {path.stem for path in LISTS.glob("*.toml")} == {wheel.replace("==", "-") for wheel in RELEASES}
    for path in LISTS.glob("*.toml"):
        listed = read_list(path)
        assert all(reason.endswith(".") for reason in (*listed.fails.values(), *listed.finds.values())), path
