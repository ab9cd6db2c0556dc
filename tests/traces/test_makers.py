"""Lines that say who made something tell two places apart, and are as short as that allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.model.findings import Frame
from quiesce.simulator.judge.call_stacks import CALLERS_MAX, made_at

MALLOC = Frame("malloc", "train.py", 4)
LIBRARY = Frame("empty", "/venv/lib/python3.11/site-packages/cupy/basic.py", 22)


def caller(line: int, function: str = "main") -> Frame:
    return Frame(function, "train.py", line)


def test_one_place_has_its_innermost_line() -> None:
    assert made_at([(MALLOC, caller(9)), (caller(12), caller(9))]) == ["at train.py:4", "at train.py:12"]


def test_two_callers_of_one_function_are_named() -> None:
    assert made_at([(MALLOC, caller(9, "load")), (MALLOC, caller(12, "cache"))]) == [
        "at train.py:4 in malloc, called at train.py:9 in load",
        "at train.py:4 in malloc, called at train.py:12 in cache",
    ]


def test_callers_are_added_until_the_lines_differ() -> None:
    allocate = caller(6, "allocate")
    assert made_at([(MALLOC, allocate, caller(9), caller(30)), (MALLOC, allocate, caller(12), caller(30))]) == [
        "at train.py:4 in malloc, called at train.py:6 in allocate, called at train.py:9 in main",
        "at train.py:4 in malloc, called at train.py:6 in allocate, called at train.py:12 in main",
    ]


def test_a_stack_that_ends_where_another_goes_on_is_told_from_it() -> None:
    assert made_at([(MALLOC,), (MALLOC, caller(9))]) == [
        "at train.py:4 in malloc",
        "at train.py:4 in malloc, called at train.py:9 in main",
    ]


def test_plumbing_and_libraries_are_no_callers() -> None:
    plumbing = Frame("call", "/lib/python3.11/ctypes.py", 5, folded="ctypes")
    assert made_at([(plumbing, MALLOC, LIBRARY, caller(9)), (MALLOC, caller(12))]) == [
        "at train.py:4 in malloc, called at train.py:9 in main",
        "at train.py:4 in malloc, called at train.py:12 in main",
    ]


def test_files_of_one_name_have_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert made_at([(Frame("a", f"{tmp_path}/x/pool.c", 3),), (Frame("b", "/y/pool.c", 3),)]) == [
        "at x/pool.c:3",
        "at /y/pool.c:3",
    ]


def test_what_callers_cannot_tell_apart_stays_short() -> None:
    assert made_at([(MALLOC, caller(9)), (MALLOC, caller(9))]) == ["at train.py:4", "at train.py:4"]


def test_code_without_lines_names_its_callers_too() -> None:
    make, one, other = (Frame(name, module="/srv/client", offset=16) for name in ("make", "one", "other"))
    assert made_at([(make, one), (make, other)]) == [
        "by make (client+0x10), called by one (client+0x10)",
        "by make (client+0x10), called by other (client+0x10)",
    ]


def test_of_many_callers_the_one_that_differs_is_named() -> None:
    deep = tuple(caller(10 + depth) for depth in range(3 * CALLERS_MAX))
    first, second = made_at([(MALLOC, *deep, caller(90)), (MALLOC, *deep, caller(95))])
    assert first.endswith(", …, called at train.py:90 in main")
    assert second.endswith(", …, called at train.py:95 in main")
    assert first.count("called") == CALLERS_MAX
