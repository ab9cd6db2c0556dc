"""Programs of CuPy under the lazy schedule: correct ones accuse nobody, each wrong one breaks its rule and no other."""

from __future__ import annotations

import re

import pytest

from .cupy_programs import GUILTY, GUILTY_ON_HIP, INNOCENT, PREPARE
from .cupy_wheels import NEEDS_A_WHEEL, Release, release
from .test_cupy import run

pytestmark = NEEDS_A_WHEEL
__all__ = ["release"]

OPTIONS = ("--schedule", "lazy", "--devices", "2", "--capacity", "1GiB")


@pytest.mark.parametrize("name", sorted(INNOCENT))
def test_a_correct_program_accuses_nobody(release: Release, name: str) -> None:
    done = run(release, PREPARE + INNOCENT[name], *OPTIONS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(GUILTY))
def test_a_wrong_program_breaks_its_rule(release: Release, name: str) -> None:
    rule, text = GUILTY[name]
    done = run(release, PREPARE + text, *OPTIONS)
    assert set(re.findall(r"rule: +(\w+)", done.stdout)) == {rule}, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(GUILTY_ON_HIP))
def test_a_program_that_is_wrong_on_hip_only(release: Release, name: str) -> None:
    rule, text = GUILTY_ON_HIP[name]
    done = run(release, PREPARE + text, *OPTIONS)
    broken = {rule} if release.flavour.startswith("hip") else set()
    assert set(re.findall(r"rule: +(\w+)", done.stdout)) == broken, done.stdout + done.stderr
