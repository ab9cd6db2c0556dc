from __future__ import annotations

import pytest

from quiesce.oracle.invariants import NAMES
from quiesce.reporting.page.glossary import INVARIANTS, VERDICTS, invariants_in_order, sentence_of
from quiesce.results import Verdict


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_invariant_of_the_oracle_has_a_sentence(name: str) -> None:
    assert sentence_of(name).endswith(".")


def test_every_verdict_has_a_sentence() -> None:
    assert set(VERDICTS) == set(Verdict)
    assert all(sentence.endswith(".") for sentence in VERDICTS.values())


def test_a_third_partys_invariant_has_none() -> None:
    assert sentence_of("somebody_elses_rule") == ""


def test_broken_invariants_come_first() -> None:
    names = invariants_in_order(["valid_requests_are_served", "somebody_elses_rule"])
    assert len(names) == len(INVARIANTS)
    assert names[0] == ("valid_requests_are_served", "A request that is valid and fits is served.", True)
    assert not any(is_broken for _, _, is_broken in names[1:])
