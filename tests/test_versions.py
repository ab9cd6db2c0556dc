from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.model.versions import find_version, parse_versions

_versions = st.lists(st.integers(0, 30), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("versions", "inside", "outside"),
    [
        ("*", ["0", "3.1", "unknown"], []),
        ("1.2", ["1.2", "1.2.0", "v1.2"], ["1.2.1", "1", "1.20", "unknown"]),
        ("==1.2", ["1.2.0"], ["1.2.1"]),
        ("!=1.2", ["1.3", "1.2.1"], ["1.2", "1.2.0.0", "unknown"]),
        (">=1.2", ["1.2", "1.10", "2", "2026.1.4"], ["1.1.9", "0"]),
        (">1.2", ["1.2.1"], ["1.2", "1.2.0"]),
        ("<3", ["2.99", "0"], ["3", "3.0.1"]),
        ("<=3", ["3", "3.0"], ["3.0.1"]),
        (">=3.1.0,<3.2", ["3.1", "3.1.9"], ["3.0.9", "3.2"]),
        ("1.0..2.3", ["1", "1.5", "2.3", "2.3.0"], ["0.9", "2.3.1"]),
        ("4.6.01..4.7.00", ["4.6.01", "4.6.1", "4.7"], ["4.6.00", "4.7.01"]),
    ],
)
def test_a_range_holds_what_its_comparisons_hold(versions: str, inside: list[str], outside: list[str]) -> None:
    parsed = parse_versions(versions)
    assert [version for version in inside if version not in parsed] == []
    assert [version for version in outside if version in parsed] == []


@pytest.mark.parametrize(
    "versions",
    [
        "",
        " ",
        "all",
        "1.x",
        ">=",
        "~=1.2",
        "1.2.*",
        "1..",
        "..2",
        "1.2,",
        ">=1.2 <3",
        "=1.2",
        "*,>=1",
        "1.2rc1",
        "-1",
        "\u0661",
    ],
)
def test_anything_else_is_an_error_that_names_the_term(versions: str) -> None:
    with pytest.raises(ValueError, match="names no versions"):
        parse_versions(versions)


def test_a_span_that_ends_before_it_begins_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'2\.1\.\.2\.0' ends before it begins"):
        parse_versions("2.1..2.0")


@pytest.mark.parametrize(
    ("reported", "version"),
    [
        ("PyOpenCL 2026.1.4 on OpenCL 3.0 PoCL 3.0-rc2", (2026, 1, 4)),
        ("glibc 2.36", (2, 36)),
        ("3.1.0rc1", (3, 1)),
        ("0", ()),
        ("none", None),
        ("", None),
    ],
)
def test_a_version_is_the_first_dotted_number(reported: str, version: tuple[int, ...] | None) -> None:
    assert find_version(reported) == version


@given(_versions, _versions)
def test_order_is_that_of_the_numbers(one: list[int], other: list[int]) -> None:
    length = max(len(one), len(other))
    first, second = ([*numbers, *[0] * (length - len(numbers))] for numbers in (one, other))
    text, bound = (".".join(map(str, numbers)) for numbers in (one, other))
    assert (text in parse_versions(f"<{bound}")) == (first < second)
    assert (text in parse_versions(f">={bound}")) == (first >= second)
    assert (text in parse_versions(bound)) == (first == second)
