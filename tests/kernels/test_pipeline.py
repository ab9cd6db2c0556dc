"""The list of passes, and the page that explains it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")

from quiesce.simulator.kernels.translation.pipeline import PASSES, Kernel

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "kernel_compiler.md"


@pytest.fixture(autouse=True)
def tuned() -> bool:
    """Nothing here depends on how often a kernel is launched."""
    return False


def test_the_page_has_every_pass_in_order() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## The passes")[1].split("\n## ")[0]
    assert re.findall(r"^\| ([a-z][^|]*) \| [A-Z]", section, re.MULTILINE) == [each.name for each in PASSES]


def test_what_a_pass_needs_and_gives_are_fields_of_a_kernel() -> None:
    known = {each.name for each in fields(Kernel)}
    for each in PASSES:
        named = re.split(r", ", f"{each.needs}, {each.gives}")
        assert {name.partition(".")[0] for name in named} <= known, each.name
        assert each.run.__doc__
