"""Correct allocators of other policy keep the contract as well: none is accused, by nothing that a run consists of."""

from __future__ import annotations

import pytest

from quiesce.conformance import run_conformance

from .allocators.bench import Trial
from .allocators.correct import CORRECT


@pytest.mark.parametrize("allocator", CORRECT, ids=lambda allocator: allocator.name)
def test_a_correct_allocator_conforms(allocator: Trial) -> None:
    conformance = run_conformance(allocator, operations=500)
    assert conformance.conforms, conformance.text()
