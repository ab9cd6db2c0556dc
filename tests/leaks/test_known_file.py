"""The file of known leaks: read, written in a stable order, and refused with one line that says what to write."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from quiesce.leaks.known import KnownLeak, read_known, write_known
from quiesce.model.errors import ConfigurationError

ENTRIES = (
    KnownLeak('t.py::test_a[\x7f-"é]', "python", 3 << 20, "issue 7", (("a.b", "1"), ("python", "3.11")), is_size=True),
    KnownLeak("t.py::test_b", "streams", 2, "a stream for each thread"),
    KnownLeak("t.py::*", "", None, "until the release", expires=date(2027, 1, 31)),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    write_known(path, ENTRIES)
    assert read_known(path) == ENTRIES
    assert path.read_text(encoding="utf-8").partition("\n\n")[2].rpartition("\n\n")[2] == (
        '[[leak]]\ntest = "t.py::*"\nreason = "until the release"\nexpires = 2027-01-31\n'
    )
    first = path.read_bytes()
    write_known(path, read_known(path))
    assert path.read_bytes() == first


def test_a_file_without_entries_knows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    write_known(path, ())
    assert read_known(path) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x", "it is not TOML"),
        ("a = 1", "'a' is not expected; write one table"),
        ("leak = 3", "'leak' is not expected"),
        ("\n[[leak]]\nreason = 'r'", "line 2, entry 1: test is ''; write a text"),
        ("[[leak]]\ntest = 't'\nup_to = 3\ngauge = 'python'", "entry 1: reason is ''; write a text"),
        ('[[leak]]\nreason = """\n[[leak]]"""', "^entry 1: test is ''; write a text"),  # no second header
        ("[[leak]]\nlimit = 3", "entry 1: there is no 'limit'; write test, gauge, up_to"),
        ("[[leak]]\ntest = 't'\nreason = 'r'", "it would hide any growth for ever; write up_to, or a date"),
        ("[[leak]]\ntest = 't'\nreason = 'r'\nup_to = 4", "up_to needs a gauge; write one of contexts"),
        ("[[leak]]\ntest = 't'\nreason = 'r'\ngauge = 'python'\nup_to = '2 MB'", "up_to is '2 MB'; write 2 MiB"),
        ("[[leak]]\ntest = 't'\nreason = 'r'\ngauge = 'python'\nup_to = 0", "up_to is 0; write a size such as"),
        ("[[leak]]\ntest = 't'\nreason = 'r'\nexpires = '2027-01-31'", "write a date without quotes, such as"),
        (
            "[[leak]]\ntest = 't'\nreason = 'r'\nexpires = 2027-01-31\nversions = { python = 3.12 }",
            'write { python = "3.12" }',
        ),
        (
            "[[leak]]\ntest = 't'\nreason = 'r'\nexpires = 2027-01-31\n" * 2,
            "line 5, entry 2: there is one for t .all gauges.",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=says) as caught:
        read_known(path)
    assert "\n" not in str(caught.value)
