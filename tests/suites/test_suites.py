"""Projects' own tests on the simulated device, with kernels that compute: they pass, or a library is missing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest
from tests.clients.environments import FOLDER as KEPT
from tests.clients.environments import NotInstallable, made_environment
from tests.suites.choices import Choice
from tests.suites.running import outcomes_folder, run_part
from tests.suites.sources import unpack_tests
from tests.suites.suites import Suite

_SHOWN_MAX: Final = 10


def prepared(suite: Suite, checkout: Path | None) -> tuple[Path, Path]:
    """Return the interpreter of the suite's environment, and the folder in which its tests are named."""
    if suite.needs_checkout and checkout is None:
        address, tag = suite.source.split()
        pytest.skip(f"{suite.name} needs --checkout FOLDER: git clone --branch {tag} {address} FOLDER")
    packages = ("--only-binary", ":all:", *suite.requirements)
    try:
        python = made_environment(suite.name, packages, suite.python, suite.python)
    except NotInstallable as error:
        pytest.skip(f"{suite.name} can't be installed: {error}")
    if checkout is not None and suite.needs_checkout:
        return python, checkout.resolve()
    if not suite.source:
        (installed,) = python.parent.parent.glob("lib/python*/site-packages")
        return python, installed
    folder = Path(KEPT) / "sources" / suite.name
    (found,) = folder.glob("*/tests") if folder.exists() else (unpack_tests(suite.source, folder) / "tests",)
    return python, found.parent


@pytest.mark.skipif(not KEPT, reason="it downloads wheels: tox -e cupy-kernels-12.3, and its neighbours")
@pytest.mark.long
def test_every_test_passes_but_for_those_that_need_a_library(
    suite: Suite, choice: Choice, pytestconfig: pytest.Config
) -> None:
    python, tests = prepared(suite, pytestconfig.getoption("--checkout"))
    kept = outcomes_folder(suite) / f"{choice.first}-of-{choice.step}"
    if choice.quick:
        shutil.rmtree(kept, ignore_errors=True)
    ran = run_part(suite, python, tests, choice, kept)
    failed = [name for name, outcome in ran.outcomes.items() if suite.kind(name, *outcome) == "failed"]
    shown = "\n\n".join(f"{name}\n{ran.outcomes[name][1][-1500:]}" for name in failed[:_SHOWN_MAX])
    assert failed == [], f"correct what does not work, or list it in {suite.name}.toml:\n{shown}"
    unknown = [f"{found.rule}: {found.text}" for found in ran.found if not suite.is_known(found)]
    assert unknown == [], f"correct what is not true; list a fault of the project's in {suite.name}.toml"
    assert "passed" in {outcome for outcome, _ in ran.outcomes.values()}
