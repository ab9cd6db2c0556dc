"""The kinds of mistakes: each has a sentence and something that finds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quiesce.kinds import SENTENCES, Kind
from quiesce.oracle.rules import EVERY_STEP

PACKAGE = Path(__file__).parent.parent / "harness" / "quiesce"
FOUND = frozenset(
    name
    for room in ("oracle/rules", "traces")
    for path in (PACKAGE / room).glob("*.py")
    for name in re.findall(r"\bKind\.([A-Z_]+)", path.read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_is_found_by_something_and_has_one_sentence(kind: Kind) -> None:
    assert kind.name in FOUND
    assert re.fullmatch(r"[A-Z][^.]*\.", SENTENCES[kind])


def test_only_kinds_have_sentences() -> None:
    assert SENTENCES.keys() == set(Kind)


def test_every_rule_of_a_step_has_a_kind() -> None:
    assert {type(rule.kind) for rule in EVERY_STEP} == {Kind}
