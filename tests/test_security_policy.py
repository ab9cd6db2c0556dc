"""The table of promises in SECURITY.md: each names tests, and these are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
POLICY: Final = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
_TEST: Final = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _rows() -> list[list[str]]:
    table = POLICY.partition("## What is promised")[2].partition("\n## ")[0]
    rows = [re.split(r" \| ", line.strip("| ")) for line in table.splitlines() if line.startswith("|")]
    return rows[2:]


def test_every_promise_has_a_test() -> None:
    rows = _rows()
    assert len(rows) > 10
    assert [row for row in rows if len(row) != 4 or not _TEST.search(row[3])] == []


@pytest.mark.parametrize(("file", "name"), sorted(set(_TEST.findall(POLICY))))
def test_every_test_that_is_named_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
