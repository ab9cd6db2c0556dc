"""Numbers in findings are whole, have units for people, and their plurals agree."""

from __future__ import annotations

import pytest

from quiesce.model.wording import bytes_from, bytes_in_words, counted, exact_size, singular
from quiesce.simulator.judge.wording import things_in_words
from quiesce.simulator.runtime.ledger import Thing


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1,024 bytes (1 KiB)"),
        (1536, "1,536 bytes (1.5 KiB)"),
        (1 << 20, "1,048,576 bytes (1 MiB)"),
        (5 << 30, "5,368,709,120 bytes (5 GiB)"),
        ((1 << 20) - 1, "1,048,575 bytes (1,024.0 KiB)"),
        (1 << 64, "18,446,744,073,709,551,616 bytes (16 EiB)"),
        (1 << 75, f"{1 << 75:,} bytes (32,768 EiB)"),
    ],
)
def test_bytes_are_exact_and_readable(size_bytes: int, words: str) -> None:
    assert bytes_in_words(size_bytes) == words


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("0", 0), ("512", 512), ("512 B", 512), ("1 byte", 1), ("2 KiB", 2048), ("1.5GiB", 3 << 29), ("3 TiB", 3 << 40)],
)
def test_a_size_is_read_with_its_unit(text: str, size_bytes: int) -> None:
    assert bytes_from(text) == size_bytes


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 B"), (1000, "1000 B"), (1025, "1025 B"), (3 << 11, "6 KiB"), (1 << 62, "4 EiB")]
)
def test_a_size_is_written_as_it_is_read(size_bytes: int, text: str) -> None:
    assert exact_size(size_bytes) == text
    assert bytes_from(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("24 MB", "write 24 MiB"),
        ("1.5g", "write 1.5 GiB"),
        ("24 mib", "write 24 MiB"),
        ("much", "write a number with B, KiB, MiB, GiB or TiB, such as 24 MiB"),
        ("-1", "write a number with *"),
        ("", "write a number with *"),
    ],
)
def test_of_what_is_no_size_it_is_said_what_to_write(text: str, instead: str) -> None:
    with pytest.raises(ValueError, match="write ") as caught:
        bytes_from(text)
    pytest.LineMatcher([str(caught.value)]).fnmatch_lines([instead])


def test_plurals_agree() -> None:
    assert [counted(number, "block") for number in (0, 1, 2, 2000)] == [
        "0 blocks",
        "1 block",
        "2 blocks",
        "2,000 blocks",
    ]
    assert things_in_words(Thing.DEVICE, 1) == "1 block of device memory"
    assert things_in_words(Thing.STREAM, 2) == "2 streams"
    assert things_in_words(Thing.GRAPH_EXEC, 1) == "1 executable graph"


def test_everything_has_a_name_of_words() -> None:
    assert all("_" not in things_in_words(thing, 2) for thing in Thing)


@pytest.mark.parametrize(("unit", "one"), [("threads", "thread"), ("processes", "process"), ("bytes", "byte")])
def test_the_unit_of_one(unit: str, one: str) -> None:
    assert singular(unit) == one
