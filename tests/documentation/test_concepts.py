"""The page of concepts has every term that the reference of case files explains in a table."""

from __future__ import annotations

import re
from typing import Final

from tests.documentation.pages import ROOT

CONCEPTS: Final = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
CASE_FILES: Final = (ROOT / "docs" / "reference" / "case_files.md").read_text(encoding="utf-8")
TERMS: Final = re.findall(r"^### (.+)$", CONCEPTS, re.MULTILINE)


def test_every_term_of_case_files_is_a_concept() -> None:
    table = re.search(r"^\| term \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)", CASE_FILES, re.MULTILINE)
    assert table
    words = re.findall(r"^\| ([^|]+?) \|", table[1], re.MULTILINE)
    assert len(words) > 10
    assert [word for word in words if word not in TERMS] == []


def test_each_concept_is_explained_once_and_has_an_example() -> None:
    assert len(TERMS) == len(set(TERMS))
    sections = re.split(r"^##+ ", CONCEPTS, flags=re.MULTILINE)
    explained = {section.partition("\n")[0]: section for section in sections}
    assert [term for term in TERMS if "Example" not in explained[term] and "| " not in explained[term]] == []
