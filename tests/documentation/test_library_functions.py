"""The page about libraries lists the functions that compute, and no others."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest
from tests.documentation.pages import ROOT

pytest.importorskip("scipy")

from quiesce.simulator.libraries import server
from quiesce.simulator.libraries.random import OFFSET_MAX
from quiesce.simulator.libraries.table import TABLE

PAGE = (ROOT / "docs" / "reference" / "libraries.md").read_text(encoding="utf-8")


def expanded(pattern: str) -> Iterator[str]:
    """Yield the names that braces stand for."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if number % 2 else [part] for number, part in enumerate(parts)]
    return map("".join, itertools.product(*choices))


def test_every_function_is_listed() -> None:
    table = PAGE.partition("## Functions")[2].partition("These fail by name")[0]
    of_libraries = r"`((?:(?:cu|hip)(?:blas|dnn|fft|rand|solver|sparse)|nccl)[^`]*)`"
    patterns = re.findall(of_libraries, table.partition("|---|---|")[2])
    listed = {name for pattern in patterns for name in expanded(pattern)}
    assert len(listed) > 100
    assert listed == {re.sub(r"(?:_v2)?(?:_64)?$", "", name) for name in TABLE}


def test_limits_are_those_of_the_rows() -> None:
    assert f"more than {OFFSET_MAX:,} results" in PAGE
    assert f"longer than {server._CALL_SECONDS} seconds" in PAGE
    assert f"`{server.CALL_SECONDS_VARIABLE}`" in PAGE
