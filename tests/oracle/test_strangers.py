"""Allocators that were written against the contract alone: the faulty are caught, and the correct are not accused."""

from __future__ import annotations

import pytest
from tests.seeds import sampled

from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.lockstep import run_lockstep
from quiesce.model.backend import Capability

from .strangers.correct import CORRECT
from .strangers.faulty import FAULTY, Faulty

OPERATIONS_MAX = 25_000


def first_failing(faulty: Faulty) -> tuple[GeneratedSequence, str]:
    performed = number = 0
    while performed < OPERATIONS_MAX:
        sequence = generate_one(faulty.backend.describe(), faulty.seed, number)
        trial = run_lockstep(faulty.backend, sequence.device, sequence.steps(), timeline=False)
        if trial.findings:
            return sequence, trial.findings[0].rule
        performed += trial.operations
        number += 1
    pytest.fail(f"nothing found in {performed} operations")


@pytest.mark.parametrize(
    "faulty", sampled([each for each in FAULTY if not each.rare], 2), ids=lambda faulty: faulty.name
)
def test_a_faulty_stranger_is_caught_and_its_correct_sibling_is_not(faulty: Faulty) -> None:
    sequence, rule = first_failing(faulty)
    assert rule in faulty.accusations
    assert run_lockstep(faulty.correct, sequence.device, sequence.steps(), timeline=False).findings == ()


def test_the_strangers_differ_in_what_they_say_of_themselves() -> None:
    capabilities = {capability for stranger in CORRECT for capability in stranger.describe().capabilities}
    assert Capability.CAPTURE in capabilities
    assert len({(each.describe().capabilities, each.describe().promises) for each in CORRECT}) >= 5
