"""Saving what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.allocators.cases.case import Request
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.generation.editing import leaves
from quiesce.allocators.generation.saving import in_short_names, named_case, save
from quiesce.backends.reference import backend as reference
from quiesce.model.findings import Finding

TEXT = "title: A block comes and goes\nkind: control\nneeds: memory\n\na = allocate 1MiB\nfree a\n"


def test_a_save_that_is_cut_short_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = parse_text(TEXT, "found/it.case")
    path = save(case, tmp_path)
    before = path.read_text(encoding="utf-8")

    def fail(self: Path, target: Path) -> Path:
        raise OSError("the machine stops")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="stops"):
        save(replace(case, title="Another title"), tmp_path)
    assert path.read_text(encoding="utf-8") == before


def test_what_fails_only_when_everything_is_given_back_is_told() -> None:
    case = parse_text("title: x\nkind: control\nneeds: memory\n\nb7 = allocate 1\n", "x.case", "x")
    finding = Finding("some_rule", "one thing", "another", request="free b7")
    named = named_case(case, finding, reference().describe(), found_by="a test", name="x")
    (made,) = leaves(named.body)
    assert isinstance(made, Request)
    slot = made.template.split()[0]
    assert [text for _, text in named.comments] == [
        f"then, at the end, when everything is given back: free {slot}",
        "expected: one thing",
        "observed: another",
    ]


def test_a_finding_has_the_names_of_the_saved_case() -> None:
    case = parse_text("title: x\nkind: control\nneeds: memory\n\nb7 = allocate 1\nfree b7\n", "x.case", "x")
    finding = Finding(
        "some_rule",
        "no 'block8'",
        "an overlap with 'b7'",
        request="free b7",
        allocated_by="operation 0: b7 = allocate 1",
    )
    named = named_case(case, finding, reference().describe(), found_by="a test", name="x")
    made = next(iter(leaves(named.body)))
    assert isinstance(made, Request)
    slot = made.template.split()[0]
    assert slot != "b7"
    said = in_short_names(finding, case)
    assert (said.expected, said.observed) == ("no 'block8'", f"an overlap with '{slot}'")
    assert (said.request, said.allocated_by) == (f"free {slot}", f"operation 0: {slot} = allocate 1")
