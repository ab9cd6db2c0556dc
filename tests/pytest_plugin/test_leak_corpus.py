"""The corpus of leak checks says of each test what is expected, and the program that runs it judges by that."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any, Final

import pytest

BENCHMARK: Final = Path(__file__).parents[2] / "benchmarks" / "leak_verdicts.py"
VERDICTS: Final = runpy.run_path(str(BENCHMARK))
CORPUS: Final = VERDICTS["planted_in"](VERDICTS["CORPUS"])


def result(verdict: str, *findings: dict[str, str], reason: str = "") -> dict[str, Any]:
    return {"verdict": verdict, "findings": list(findings), "reason": reason, "rounds": 60}


def finding(kind: str, allocated: str = "", kept: str = "") -> dict[str, str]:
    return {"kind": kind, "observed": "it grows", "allocated_by": allocated, "kept": kept}


PYTHON: Final = "memory leak (Python)"
IN_A_LIST: Final = VERDICTS["Planted"]("leaks", "test_list", ("python",), ("ITEMS", "append"), False)
NATIVE: Final = VERDICTS["Planted"]("leaks", "test_malloc", ("c-heap",), ("",), False)
INNOCENT: Final = VERDICTS["Planted"]("innocent", "test_nothing", (), ("",), False)
BOUNDED: Final = VERDICTS["Planted"]("innocent", "test_ring", (), ("",), True)


def test_both_halves_have_leaks_and_innocents() -> None:
    for half in VERDICTS["HALVES"]:
        here = [bool(test.gauges) for test in CORPUS if test.half == half]
        assert here.count(True) >= 60
        assert here.count(False) >= 60


def test_no_name_stands_twice() -> None:
    names = [(test.file, test.name) for test in CORPUS]
    assert len(set(names)) == len(names)


def test_variables_of_the_words_exist() -> None:
    for test in CORPUS:
        text = (VERDICTS["CORPUS"] / f"{test.file}.txt").read_text(encoding="utf-8")
        body = re.sub(r'"""(?:leak|clean).*', "", text)
        for word in test.words:
            assert not re.fullmatch("[A-Z][A-Z_]*", word) or word in body, f"{test.file}: {word}"


@pytest.mark.parametrize(
    ("planted", "seen", "outcome", "expected"),
    [
        (IN_A_LIST, result("failed", finding(PYTHON, kept="m.ITEMS (list)")), "NAMED", True),
        (IN_A_LIST, result("failed", finding(PYTHON, allocated="a.py:1: x.append(1)")), "NAMED", True),
        (IN_A_LIST, result("failed", finding(PYTHON, kept="m.OTHER (list)")), "FOUND", False),
        (IN_A_LIST, result("failed", finding(PYTHON), finding(PYTHON, kept="ITEMS")), "FOUND", False),
        (IN_A_LIST, result("passed"), "MISSED", False),
        (IN_A_LIST, result("inconclusive", reason="out of time"), "UNDECIDED", False),
        (IN_A_LIST, None, "NOT_RUN", False),
        (NATIVE, result("failed", finding("memory leak (C heap)")), "NAMED", True),
        (NATIVE, result("failed", finding(PYTHON)), "FOUND", False),
        (INNOCENT, result("passed"), "CLEAN", True),
        (INNOCENT, result("failed", finding(PYTHON)), "FALSE", False),
        (INNOCENT, result("inconclusive"), "UNDECIDED", False),
        (BOUNDED, result("inconclusive"), "UNDECIDED", True),
        (BOUNDED, result("failed", finding(PYTHON)), "FALSE", False),
    ],
)
def test_a_result_is_judged_by_what_is_expected(
    planted: Any, seen: dict[str, Any] | None, outcome: str, expected: bool
) -> None:
    judged = VERDICTS["judged"](planted, seen)
    assert (judged.outcome, judged.expected) == (VERDICTS[outcome], expected)


def test_a_test_without_an_expectation_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text("def test_of_nothing():\n    pass\n", encoding="utf-8")
    with pytest.raises(ValueError, match="test_of_nothing does not say what is expected"):
        VERDICTS["planted_in"](tmp_path)


def test_runs_are_compared_by_test() -> None:
    def record(outcome: str, rounds: int) -> dict[str, Any]:
        return {"tests": {"a::test_a": {"outcome": outcome, "rounds": rounds}, f"b::{rounds}": {}}}

    said = list(VERDICTS["differences"](record("missed", 24), record("found", 48)))
    assert said[0] == "1 tests in both, 1 verdicts differ, 1 numbers of rounds differ"
    assert said[1:] == ["  a::test_a: missed (24 rounds) / found (48 rounds)"]
