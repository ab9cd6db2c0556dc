"""Correct allocators of other policy keep the contract as well: none is accused, by nothing that a run consists of.

Every fourth of them is examined, and all are in ``tox -e soak``.
"""

from __future__ import annotations

import pytest

from quiesce.backend import Backend
from quiesce.conformance import run_conformance

from .allocators.correct import CORRECT
from .strangers.correct import CORRECT as STRANGERS
from .strangers.correct import WITHHOLDING
from .test_soak import SOAKING

ALLOCATORS: tuple[Backend, ...] = (*CORRECT, *STRANGERS, *WITHHOLDING)
EXAMINED = ALLOCATORS if SOAKING else ALLOCATORS[::4]


@pytest.mark.parametrize("allocator", EXAMINED, ids=lambda allocator: allocator.describe().name)
def test_a_correct_allocator_conforms(allocator: Backend) -> None:
    conformance = run_conformance(allocator, operations=100)
    assert conformance.conforms, conformance.text()
