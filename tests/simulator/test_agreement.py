"""The simulated runtime and the reference answer alike: 10^4 random operations in every run, each with its error code.

QUIESCE_AGREEMENT_OPERATIONS asks for more, such as 1000000.
"""

from __future__ import annotations

import os
from random import Random
from typing import Final

import pytest
from tests.simulator.sequences import OrderSequence

from quiesce.backend import DeviceProfile, Flavour
from quiesce.backends import reference
from quiesce.backends.simulated import Simulator
from quiesce.errors import BackendUnavailable
from quiesce.outcomes import Allocated
from quiesce.request_format import format_request

OPERATIONS: Final = int(os.environ.get("QUIESCE_AGREEMENT_OPERATIONS", "10000"))
LENGTH: Final = 100


@pytest.mark.parametrize("flavour", list(Flavour))
def test_outcomes_agree(flavour: Flavour) -> None:
    profile = DeviceProfile(flavour=flavour)
    for seed in range(OPERATIONS // LENGTH // 2):
        try:
            simulated = Simulator().open(profile)
        except BackendUnavailable as error:
            pytest.skip(str(error))
        expected = reference.backend().open(profile)
        history = []
        for operation in OrderSequence(Random(seed)).operations(LENGTH):
            history.append(format_request(operation))
            wanted, observed = expected.perform(operation).outcome, simulated.perform(operation).outcome
            if not (isinstance(wanted, Allocated) and isinstance(observed, Allocated)):  # addresses need not agree
                assert observed == wanted, f"seed {seed}: " + "; ".join(history)
        simulated.close()
        expected.close()
