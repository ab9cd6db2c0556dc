"""The tables from opcode to rule: nothing that has a weight is missing, and all can be switched off."""

from __future__ import annotations

import pytest

from quiesce.generation.decoder import SWARM_BYTES
from quiesce.generation.weights import CAPTURE_WEIGHTS, LEGAL_RULES, OPCODES, RULES, THEMES, Rule, tables


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("rules", [LEGAL_RULES, RULES], ids=["valid", "hostile"])
def test_every_rule_with_a_weight_has_an_opcode(theme: str, rules: tuple[Rule, ...]) -> None:
    outside, inside = tables(rules, theme, 0)
    weighed = [rule for rule in rules if (rule.own_weight if rule.theme == theme else rule.weight)]
    assert {rule.function for rule in weighed} == set(outside)
    assert {rule.function for rule in rules if rule.in_capture and rule.function in CAPTURE_WEIGHTS} == set(inside)
    assert len(outside) == len(inside) == OPCODES - 1


def test_every_rule_can_be_switched_off() -> None:
    assert len(RULES) <= 8 * SWARM_BYTES
