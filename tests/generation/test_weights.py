"""The tables from opcode to action: nothing that has a weight is missing, and all can be switched off."""

from __future__ import annotations

import pytest

from quiesce.allocators.generation.decoder import SWARM_BYTES
from quiesce.allocators.generation.weights import (
    ACTIONS,
    CAPTURE_WEIGHTS,
    LEGAL_ACTIONS,
    OPCODES,
    THEMES,
    Action,
    tables,
)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("actions", [LEGAL_ACTIONS, ACTIONS], ids=["valid", "hostile"])
def test_every_action_with_a_weight_has_an_opcode(theme: str, actions: tuple[Action, ...]) -> None:
    outside, inside = tables(actions, theme, 0)
    weighed = [action for action in actions if (action.own_weight if action.theme == theme else action.weight)]
    assert {action.function for action in weighed} == set(outside)
    assert {action.function for action in actions if action.in_capture and action.function in CAPTURE_WEIGHTS} == set(
        inside
    )
    assert len(outside) == len(inside) == OPCODES - 1


def test_every_action_can_be_switched_off() -> None:
    assert len(ACTIONS) <= 8 * SWARM_BYTES
