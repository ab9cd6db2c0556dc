"""Correct allocators of other policy keep the contract as well: none is accused, by nothing that a run consists of.

The seed of the run chooses every fourth of them; all are in ``tox -e soak``.
"""

from __future__ import annotations

import pytest
from tests.seeds import sampled

from quiesce.allocators.conformance import run_conformance
from quiesce.model.backend import Backend

from .allocators.correct import CORRECT
from .strangers.correct import CORRECT as STRANGERS
from .strangers.correct import WITHHOLDING

ALLOCATORS: tuple[Backend, ...] = (*CORRECT, *STRANGERS, *WITHHOLDING)
EXAMINED = sampled(ALLOCATORS, 4)


@pytest.mark.parametrize("allocator", EXAMINED, ids=lambda allocator: allocator.describe().name)
def test_a_correct_allocator_conforms(allocator: Backend) -> None:
    conformance = run_conformance(allocator, operations=100)
    assert conformance.conforms, conformance.text()
