"""The tables of claims: each claim has a row, and an example that needs it, of the corpus or on the page."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import Capability, Promise
from quiesce.model.results import Verdict

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "reference" / "claims.md").read_text(encoding="utf-8")
HEADER: Final = "| claim | owes | may | example |\n|---|---|---|---|\n"
CLAIMS: Final = (*Capability, *Promise)
BELOW: Final = "[below](#cases-that-the-corpus-does-not-have)"


def rows(page: str) -> list[tuple[str, str, str, str]]:
    """Return the rows of all tables of claims."""
    tables = [part.partition("\n\n")[0] for part in page.split(HEADER)[1:]]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for table in tables for line in table.splitlines()]
    return [(claim.strip("`"), owes, may, example) for claim, owes, may, example in found]


@functools.cache
def corpus() -> Mapping[str, Case]:
    return {case.identifier: case for case in load(find_cases([ROOT / "cases"])).cases}


def shown() -> dict[str, Case]:
    """Return the cases that the page shows whole, by their claim."""
    found = re.findall(r"^`([a-z-]+)`:\n\n```text\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL)
    return {claim: parse_text(text, f"{claim}.case", claim) for claim, text in found}


def test_each_claim_has_one_row() -> None:
    assert sorted(claim for claim, *_ in rows(PAGE)) == sorted(map(str, CLAIMS))


def test_a_claim_without_a_row_is_seen() -> None:
    lacking = "".join(line for line in PAGE.splitlines(keepends=True) if not line.startswith("| `stall` |"))
    assert {str(claim) for claim in CLAIMS} - {claim for claim, *_ in rows(lacking)} == {"stall"}


@pytest.mark.parametrize(("claim", "owes", "example"), [(row[0], row[1], row[3]) for row in rows(PAGE)])
def test_each_row_says_what_is_owed_and_has_an_example_that_needs_the_claim(
    claim: str, owes: str, example: str
) -> None:
    assert owes.endswith(".")
    case = shown()[claim] if example == BELOW else corpus()[example.strip("`")]
    assert claim in {str(each) for each in (*case.needs, *case.promises)}


def test_the_page_shows_no_case_where_the_corpus_has_one() -> None:
    needed = {str(claim) for case in corpus().values() for claim in (*case.needs, *case.promises)}
    assert shown().keys() == {str(claim) for claim in CLAIMS} - needed
    assert [run_case(case, reference()).verdict for case in shown().values()] == [Verdict.PASSED] * len(shown())
