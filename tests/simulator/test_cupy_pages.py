"""The pages whose commands need CuPy for CUDA: each command does what its page says, with kernels that compute."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.documentation.pages import ROOT
from tests.documentation.running import run_page
from tests.documentation.unrun import WITH_CUPY, reason_not_to_run

from .cupy_wheels import NEEDS_A_WHEEL, Release, release

pytestmark = NEEDS_A_WHEEL
__all__ = ["release"]


def reason(command: str) -> str | None:
    """Return why a command is not run: all that need CuPy are."""
    found = reason_not_to_run(command)
    return None if found == WITH_CUPY else found


def reason_for_others(command: str) -> str | None:
    """Return why a command is not run: those that need CuPy are, and no others."""
    return None if reason_not_to_run(command) == WITH_CUPY else "another test runs it"


@pytest.mark.parametrize("name", ["docs/tutorials/run_your_cupy_tests.md", "README.md"])
def test_the_commands_of_a_page_do_what_it_says(
    name: str, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not re.match(r"cuda", release.flavour):
        pytest.skip("the page is about CuPy for CUDA")
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    text = (ROOT / name).read_text(encoding="utf-8")
    run_page(name, text, tmp_path, reason_not_to_run=reason if name != "README.md" else reason_for_others)
