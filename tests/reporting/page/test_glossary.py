from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from quiesce.allocators.execution import KNOWN_STILL_THERE
from quiesce.allocators.oracle.rules import NAMES
from quiesce.backends.cupy.context import SURVIVES
from quiesce.model.results import Verdict
from quiesce.reporting.glossary import RULES, RULES_BY_SUBJECT, VERDICTS, rules_in_order, sentence_of
from quiesce.subjects.programs import ENDS, SUCCEEDS

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "rules.md"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_rule_of_the_oracle_has_a_sentence(name: str) -> None:
    assert sentence_of(name).endswith(".")


@pytest.mark.parametrize("name", [SURVIVES, KNOWN_STILL_THERE, ENDS, SUCCEEDS])
def test_rules_that_the_oracle_does_not_know_have_a_sentence(name: str) -> None:
    assert sentence_of(name).endswith(".")


def test_the_page_of_rules_says_what_the_report_says() -> None:
    page: dict[str, dict[str, str]] = {}
    rules, _, kinds = PAGE.read_text(encoding="utf-8").partition("\n## Kinds of mistakes\n")
    assert kinds, "which tests/test_kinds.py reads"
    for section in rules.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        page[title] = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))
    assert page == RULES_BY_SUBJECT


def test_every_verdict_has_a_sentence() -> None:
    assert set(VERDICTS) == set(Verdict)
    assert all(sentence.endswith(".") for sentence in VERDICTS.values())


def test_a_third_partys_rule_has_none() -> None:
    assert sentence_of("somebody_elses_rule") == ""


def test_broken_rules_come_first() -> None:
    names = rules_in_order(["valid_requests_are_served", "somebody_elses_rule"])
    assert len(names) == len(RULES)
    assert names[0] == ("valid_requests_are_served", "A request that is valid and fits is served.", True)
    assert not any(is_broken for _, _, is_broken in names[1:])
