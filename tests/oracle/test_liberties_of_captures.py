"""Liberties beside a capture that the contract leaves to default streams and runtimes, as dialogues."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from quiesce.model.backend import Capability, DeviceProfile, Flavour
from quiesce.model.outcomes import CAPTURE_IMPLICIT, NOT_READY, Outcome, Rejected

from .test_liberties import DESCRIPTION, DONE, INVALIDATED, RELAXED, UNSUPPORTED, Exchange, findings

OF_ITS_OWN = replace(DESCRIPTION, capabilities=DESCRIPTION.capabilities - {Capability.LEGACY_DEFAULT_STREAM})
"""Its default stream waits for no other."""


@pytest.mark.parametrize("request_line", ["launch", "record event e", "fill a 0"])
@pytest.mark.parametrize("outcome", [DONE, Rejected(CAPTURE_IMPLICIT)])
def test_a_default_stream_that_waits_for_no_other_may_go_on_beside_a_capture(
    request_line: str, outcome: Outcome
) -> None:
    assert findings(*RELAXED, (request_line, outcome), description=OF_ITS_OWN) == ()
    assert findings(*RELAXED, (request_line, Rejected(NOT_READY)), description=OF_ITS_OWN)
    assert findings(*RELAXED, (request_line, DONE))


def test_a_default_stream_that_waits_for_no_other_may_join_a_capture() -> None:
    joined: tuple[Exchange, ...] = (*RELAXED, ("record event e on s", DONE), ("wait event e", DONE))
    assert findings(*joined, description=OF_ITS_OWN) == ()
    assert findings(*joined, ("launch", DONE), ("g = end capture on s", DONE), description=OF_ITS_OWN)
    assert findings(*joined)


def test_a_default_stream_that_joined_a_capture_says_that_it_is_invalid() -> None:
    own = partial(findings, description=OF_ITS_OWN)
    joined: tuple[Exchange, ...] = (*RELAXED, ("record event e on s", DONE), ("wait event e", DONE))
    spoiled: Exchange = ("query stream s", UNSUPPORTED)
    assert own(*joined, spoiled, ("launch", INVALIDATED)) == ()
    assert own(*joined, ("launch", INVALIDATED))
    assert own(*RELAXED, spoiled, ("launch", INVALIDATED))


def test_a_stream_may_be_refused_its_end_beside_a_capture_on_hip_alone() -> None:
    beside: tuple[Exchange, ...] = (*RELAXED, ("destroy stream t", UNSUPPORTED))
    assert findings(*beside)
    assert findings(*beside, device=DeviceProfile(flavour=Flavour.HIP)) == ()


def test_a_policy_may_be_refused_beside_a_capture() -> None:
    up: tuple[Exchange, ...] = (("initialize", DONE), ("s = create stream", DONE))
    assert findings(*up, ("begin capture on s", DONE), ("create policy", UNSUPPORTED)) == ()
    assert findings(*up, ("create policy", UNSUPPORTED))
