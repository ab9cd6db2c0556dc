"""The simulated runtime and the reference agree on random operations: outcomes, error codes and gauges after each.

10^4 operations in every run; QUIESCE_AGREEMENT_OPERATIONS asks for more, and ``tox -e agreement`` for a million.
"""

from __future__ import annotations

import os
from random import Random
from typing import Final

import pytest
from tests.seeds import SEED
from tests.simulator.sequences import CAPACITY_BYTES, DEVICES, RuntimeSequence
from tests.simulator.unpooled import open_unpooled

from quiesce.backends.simulated import Simulator
from quiesce.model.backend import Context, DeviceProfile, Flavour
from quiesce.model.errors import BackendUnavailable
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Allocated, Outcome, describe
from quiesce.model.requests import format_request

OPERATIONS: Final = int(os.environ.get("QUIESCE_AGREEMENT_OPERATIONS", "10000"))
LENGTH: Final = 100


@pytest.mark.long
@pytest.mark.parametrize("flavour", list(Flavour))
def test_outcomes_and_gauges_agree(flavour: Flavour) -> None:
    profile = DeviceProfile(CAPACITY_BYTES, CAPACITY_BYTES, devices=DEVICES, flavour=flavour)
    outcomes: set[str] = set()
    for seed in range(SEED, SEED + OPERATIONS // LENGTH // 2):
        try:
            simulated = Simulator().open(profile)
        except BackendUnavailable as error:
            pytest.skip(str(error))
        expected = open_unpooled(profile)
        try:
            outcomes |= _agree(simulated, expected, RuntimeSequence(Random(seed)).operations(LENGTH), f"seed {seed}")
        finally:
            simulated.close()
            expected.close()
    assert {"allocated", "done", "out of memory", "rejected capture-unsupported"} <= outcomes


def _agree(simulated: Context, expected: Context, operations: list[Operation], seed: str) -> set[str]:
    """Perform the operations on both, and return what was answered."""
    history: list[str] = []
    outcomes = set()
    for operation in operations:
        history.append(format_request(operation))
        wanted, observed = expected.perform(operation).outcome, simulated.perform(operation).outcome
        said = f"{seed}: " + "; ".join(history)
        assert _without_address(observed) == _without_address(wanted), said
        readings = expected.readings()
        for key, value in simulated.readings().items():
            assert value == readings[key], f"{key[0]} of {value}, not {readings[key]}, {said}"
        outcomes.add(describe(observed))
    return outcomes


def _without_address(outcome: Outcome) -> Outcome:
    """Addresses need not agree, but whether there is one does."""
    return Allocated(min(outcome.address, 1)) if isinstance(outcome, Allocated) else outcome
