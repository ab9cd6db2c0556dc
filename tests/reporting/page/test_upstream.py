"""Numbers become links where they name a repository; those that the page of a program names are those of the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.model.program_rules import COPIED_DIRECTLY, ORDERED
from quiesce.reporting.glossary import KNOWN, reference

CASES = Path(__file__).parents[3] / "cases"


@pytest.mark.parametrize(
    ("number", "url"),
    [
        ("cupy/cupy#8090", "https://github.com/cupy/cupy/issues/8090"),
        ("vendor#7", ""),
        ("#8", ""),
        ("a/b#1 javascript:alert(1)", ""),
        ("javascript:alert(1)//a/b#1", ""),
        ("a/b#1\n", ""),
        ("a/b#१", ""),
    ],
)
def test_only_a_repository_and_a_number_are_a_link(number: str, url: str) -> None:
    assert reference(number).url == url
    assert reference(number).text == number


def test_every_number_is_of_a_case_about_that_fault() -> None:
    of_cases = {
        ORDERED: "memory_is_reused_only_after_its_last_use",
        COPIED_DIRECTLY: "pinned_source_is_copied_directly",
    }
    texts = [path.read_text(encoding="utf-8") for path in CASES.rglob("*.case")]
    missing = [
        (rule, number)
        for rule, numbers in KNOWN.items()
        for number in numbers
        if not any(
            f"finds:    {of_cases.get(rule, rule)}\n" in text and number in text.partition("\nfault")[0]
            for text in texts
        )
    ]
    assert missing == []
