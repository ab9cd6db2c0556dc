"""The kinds of mistakes: each has a sentence and something that finds it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from quiesce.allocators.oracle.rules import EVERY_STEP
from quiesce.model.rules import DRIVER_RULES, RULES, SENTENCES, Kind, kind_of_fault

PACKAGE = Path(__file__).parent.parent / "harness" / "quiesce"
SOURCES = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
SENTENCES_END = "Each kind in a sentence."
FOUND = frozenset(
    name for text in SOURCES.values() for name in re.findall(r"\bKind\.([A-Z_]+)", text.rpartition(SENTENCES_END)[2])
)
OF_RULES = PACKAGE / "allocators" / "oracle" / "rules"


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_is_found_by_something_and_has_one_sentence(kind: Kind) -> None:
    assert kind.name in FOUND
    assert re.fullmatch(r"[A-Z][^.]*\.", SENTENCES[kind])


@pytest.mark.parametrize("kind", Kind)
def test_the_page_of_rules_lists_every_kind(kind: Kind) -> None:
    page = (PACKAGE.parent.parent / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
    assert f"\n| {kind} | {SENTENCES[kind]} |\n" in page


def test_only_kinds_have_sentences() -> None:
    assert SENTENCES.keys() == set(Kind)


def test_every_rule_of_a_step_has_a_kind() -> None:
    assert {type(rule.kind) for rule in EVERY_STEP} == {Kind}


@pytest.mark.parametrize("rule", [*RULES, *DRIVER_RULES])
def test_every_rule_of_the_contract_has_a_kind(rule: str) -> None:
    assert kind_of_fault(rule) in SENTENCES


def test_every_finding_is_made_with_a_kind() -> None:
    """A finding of a rule of a step gets it from the oracle, and one that is read again has that of the record."""
    without = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path, text in SOURCES.items()
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and (
            call.func.id == "Finding"
            or (call.func.id == "found" and "from quiesce.allocators.oracle.rule import" in text)
        )
        and not any(keyword.arg in ("kind", None) for keyword in call.keywords)
        and not (call.func.id == "found" and path.is_relative_to(OF_RULES))
    ]
    assert without == []
