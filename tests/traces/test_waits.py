"""A wait for an event of a destroyed stream: HIP reads the stream (ROCm#4670, kokkos#8006), CUDA allows it."""

from __future__ import annotations

import pytest

from quiesce.backends.simulated import SimulatedContext, Simulator
from quiesce.model.backend import DeviceProfile, Flavour
from quiesce.model.errors import BackendUnavailable
from quiesce.model.requests import parse_request
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge

BEGIN = ("s = create stream", "e = create event", "launch on s", "record event e on s")


@pytest.mark.parametrize(
    ("flavour", "requests", "found"),
    [
        (Flavour.HIP, ("destroy stream s", "synchronize event e"), True),
        (Flavour.HIP, ("destroy stream s", "t = create stream", "wait event e on t"), True),
        (Flavour.HIP, ("synchronize event e", "destroy stream s"), False),
        (Flavour.HIP, ("destroy stream s", "t = create stream", "record event e on t", "synchronize event e"), False),
        (Flavour.CUDA, ("destroy stream s", "synchronize event e"), False),
    ],
)
def test_waits(flavour: Flavour, requests: tuple[str, ...], found: bool) -> None:
    try:
        context = Simulator().open(DeviceProfile(flavour=flavour))
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert isinstance(context, SimulatedContext)
    for request in (*BEGIN, *requests):
        context.perform(parse_request(request))
    findings = judge(context._machine.ledger, AtExit.NONE).findings
    context.close()
    assert [finding.rule for finding in findings] == (["waits_name_live_streams"] if found else [])
