"""What the oracle knows of a tape: who can be reached, and which pass may be refused."""

from __future__ import annotations

import pytest

from quiesce.allocators.oracle.facts import TapeModel
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.oracle import permits
from quiesce.backends.reference import ReferenceBackend
from quiesce.model.backend import DeviceProfile
from quiesce.model.requests import parse_request

SHARED_LEAF = ["w = node", "a = node of w", "b = node of w"]
CHAIN = ["w = node", "a = node of w", "b = node of a"]


def tape(*requests: str) -> TapeModel:
    model = TapeModel()
    for line in requests:
        model.apply(parse_request(line))
    return model


@pytest.mark.parametrize(
    ("requests", "root", "may_refuse"),
    [
        (CHAIN, "b", False),
        ([*CHAIN, "backward b"], "b", True),
        ([*CHAIN, "backward b"], "a", True),
        ([*CHAIN, "backward b", "c = node of a"], "c", True),
        ([*CHAIN, "backward a"], "b", True),
        ([*CHAIN, "backward a", "drop a", "drop w"], "b", True),
        (["w = node", "backward w"], "w", True),
        (["w = node", "backward w", "a = node of w"], "a", False),
        ([*SHARED_LEAF, "backward a"], "b", False),
        ([*SHARED_LEAF, "drop w", "backward a"], "b", False),
        ([*SHARED_LEAF, "backward a", "c = node of a,b"], "c", True),
    ],
)
def test_a_pass_may_be_refused_where_an_earlier_one_consumed_what_it_needs(
    requests: list[str], root: str, may_refuse: bool
) -> None:
    assert tape(*requests).may_refuse(root) is may_refuse


def test_a_node_counts_once_however_many_lead_to_it() -> None:
    assert tape(*SHARED_LEAF, "c = node of a,b", "drop w", "drop a", "drop b").reachable() == 4
    assert tape(*SHARED_LEAF, "drop w", "drop a", "drop b").reachable() == 0


@pytest.mark.parametrize(
    ("requests", "answers"),
    [(CHAIN, "success"), ([*CHAIN, "backward b"], "success or a rejection"), (["b = node", "drop b"], "a rejection")],
)
def test_what_a_pass_may_be_answered(requests: list[str], answers: str) -> None:
    model = Model(ReferenceBackend().describe(), DeviceProfile())
    for line in requests:
        model.tape.apply(parse_request(line))
    assert str(permits(model, parse_request("backward b"))) == answers
