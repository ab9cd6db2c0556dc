"""Correct allocators of other policy keep the contract as well: none is accused, by nothing that a run consists of."""

from __future__ import annotations

import pytest

from quiesce.backend import Backend
from quiesce.conformance import run_conformance

from .allocators.correct import CORRECT
from .strangers.correct import CORRECT as STRANGERS
from .strangers.correct import WITHHOLDING


@pytest.mark.parametrize(
    "allocator", [*CORRECT, *STRANGERS, *WITHHOLDING], ids=lambda allocator: allocator.describe().name
)
def test_a_correct_allocator_conforms(allocator: Backend) -> None:
    conformance = run_conformance(allocator, operations=100)
    assert conformance.conforms, conformance.text()
