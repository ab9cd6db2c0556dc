"""The page of case files says every word of the grammar, and what it shows can be parsed."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from quiesce.allocators.cases.case import Comparison, ExpectedKind
from quiesce.allocators.cases.header import DEVICE_KEYS, KEYS
from quiesce.allocators.cases.parser import parse_text
from quiesce.model.backend import Capability, Promise
from quiesce.model.gauges import Gauge
from quiesce.model.operations import CaptureMode, FailurePoint, InjectedError, MemoryKind
from quiesce.model.outcomes import ERROR_CODES
from quiesce.model.requests import RequestError, parse_request

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "case_files.md"
GRAMMAR = PAGE.read_text(encoding="utf-8")
CODE = " ".join(re.findall(r"`([^`]+)`", GRAMMAR))
KINDS = (Capability, Promise, Gauge, Comparison, ExpectedKind, MemoryKind, CaptureMode, FailurePoint, InjectedError)
WORDS = {*KEYS, *DEVICE_KEYS, *ERROR_CODES, *(str(member) for kind in KINDS for member in kind)}


@pytest.mark.parametrize("word", sorted(WORDS))
def test_every_word_is_explained(word: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", CODE)


def _requests() -> list[str]:
    rows = re.findall(r"^\| (`.+?) \|", GRAMMAR.partition("## Requests")[2].partition("### Outcomes")[0], re.MULTILINE)
    forms = [form for row in rows for form in re.findall(r"`([^`]+)`", row)]
    return [shape for form in forms for shape in (re.sub(r" \[[^\]]*\]", "", form), re.sub(r"[\[\]]", "", form))]


VALUES = {"KIND": "pinned", "SIZE": "64", "BYTE": "7", "MODE": "relaxed", "ERROR": "foreign-error", "N": "2"}


@pytest.mark.parametrize("form", _requests())
def test_every_request_parses_with_and_without_its_options(form: str) -> None:
    text = re.sub(r"\b(KIND|SIZE|BYTE|MODE|ERROR|N)\b", lambda match: VALUES[match[0]], form)
    assert parse_request(text)


def test_every_request_is_listed() -> None:
    listed = {re.sub(r".*? = ", "", form).split()[0] for form in _requests()}
    with pytest.raises(RequestError) as caught:
        parse_request("nonsense")
    assert set(caught.value.instead.removeprefix("write one of ").split(", ")) == listed


def test_the_examples_are_cases() -> None:
    blocks = [textwrap.dedent(block) for block in re.findall(r"(?:^(?: {4}.*)?\n)+", GRAMMAR, re.MULTILINE)]
    examples = [block.strip("\n") for block in blocks if block.strip()]
    assert len(examples) == 3
    assert parse_text(examples[0], "x.case").fault == "pool.no_squeeze"
    assert parse_text(examples[1], "x.case").is_own
    assert parse_text(f"title: T\nkind: control\n\n{examples[2]}", "x.case").body
