from __future__ import annotations

import pytest

from quiesce.reporting.result_lists import shorten_middle, split_case


@pytest.mark.parametrize(
    ("case", "topic", "name"),
    [
        ("pool/trim", "pool", "trim"),
        ("a/b/c", "a/b", "c"),
        ("generated 7", "", "generated 7"),
        ("unit/test_pool.py::TestIt::test_trim[a/b::c]", "unit", "test_pool.py::TestIt::test_trim[a/b::c]"),
        ("test_pool.py::test_trim[a/b]", "", "test_pool.py::test_trim[a/b]"),
    ],
)
def test_a_name_is_divided_within_its_path(case: str, topic: str, name: str) -> None:
    assert split_case(case) == (topic, name)


@pytest.mark.parametrize("length", range(1, 30))
def test_a_shortened_name_keeps_both_ends(length: int) -> None:
    name = "".join(map(chr, range(ord("a"), ord("a") + length)))
    short = shorten_middle(name, 12)
    assert len(short) == min(length, 12)
    assert (short[0], short[-1]) == (name[0], name[-1])
    assert ("…" in short) == (length > 12)
