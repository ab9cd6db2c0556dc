"""Campaigns on correct allocators: thousands of operations in every run, as many as one likes in ``tox -e soak``."""

from __future__ import annotations

import pytest
from tests.seeds import OPERATIONS, SEED, SOAKING

from quiesce.allocators.generation.campaign import run_campaign
from quiesce.backends.host import backend as host
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import Backend

from .allocators.correct import CORRECT
from .allocators.faulty import FAULTY, Faulty
from .strangers.correct import CORRECT as STRANGERS
from .strangers.correct import WITHHOLDING
from .strangers.faulty import FAULTY as FAULTY_STRANGERS
from .strangers.faulty import Faulty as FaultyStranger

BACKENDS: tuple[Backend, ...] = (*CORRECT, *STRANGERS, *WITHHOLDING, reference(), host())


@pytest.mark.parametrize("hostile", [False, True], ids=["valid", "hostile"])
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.describe().name)
def test_a_campaign_accuses_no_correct_allocator(backend: Backend, hostile: bool) -> None:
    result = run_campaign(backend, seed=SEED, operations=OPERATIONS, hostile=hostile)
    assert result.discovery is None
    assert result.operations >= OPERATIONS


@pytest.mark.skipif(not SOAKING, reason="takes tens of thousands of operations; tox -e soak")
@pytest.mark.parametrize("faulty", [each for each in FAULTY if each.rare], ids=lambda faulty: faulty.name)
def test_a_rare_fault_is_caught(faulty: Faulty) -> None:
    result = run_campaign(faulty.backend, seed=faulty.seed, operations=OPERATIONS, hostile=faulty.hostile)
    assert result.discovery is not None
    assert result.discovery.finding.rule in faulty.accusations


@pytest.mark.skipif(not SOAKING, reason="takes tens of thousands of operations; tox -e soak")
@pytest.mark.parametrize("faulty", [each for each in FAULTY_STRANGERS if each.rare], ids=lambda faulty: faulty.name)
def test_a_rare_fault_of_a_stranger_is_caught(faulty: FaultyStranger) -> None:
    results = (
        run_campaign(faulty.backend, seed=faulty.seed, operations=OPERATIONS, hostile=hostile)
        for hostile in (False, True)
    )
    discovery = next((result.discovery for result in results if result.discovery is not None), None)
    assert discovery is not None
    assert discovery.finding.rule in faulty.accusations
