"""The table of claims: each has a case of the corpus that needs it, or the corpus has none."""

from __future__ import annotations

import re
from pathlib import Path

from quiesce.backend import Capability, Promise
from quiesce.cases.catalogue import find_cases, load

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "claims.md"


def test_each_claim_has_a_case_that_needs_it() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## A case for each claim")[2]
    rows = re.findall(r"^\| `([a-z-]+)` \| (?:`([a-z_/]+)`|generated sequences only) \|$", table, re.MULTILINE)
    cases = {case.identifier: case for case in load(find_cases([ROOT / "cases"])).cases}
    needed = {str(claim) for case in cases.values() for claim in (*case.needs, *case.promises)}
    assert [claim for claim, _ in rows] == [str(each) for each in (*Capability, *Promise)]
    for claim, named in rows:
        case = cases[named] if named else None
        found = {str(each) for each in (*case.needs, *case.promises)} if case is not None else set()
        assert (claim in found) == (claim in needed), claim
