"""The file of errors that a user accepts."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.model.findings import Frame
from quiesce.simulator.judge.known_errors import KnownError, read_known_errors

FRAMES = (Frame("fill", "/srv/src/pool.cpp", 41), Frame("main", "/srv/src/main.cpp", 9))


def test_every_key_is_read(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(
        '[[error]]\nfunction = "cudaMemcpy*"\nline = "pool.cpp:41"\ncode = 1\nreason = "a"\nexpires = 2030-01-31\n'
        '[[error]]\nfunction = "cuMemFree_v2"\nreason = "b"\n',
        encoding="utf-8",
    )
    assert read_known_errors(path) == (
        KnownError("cudaMemcpy*", "pool.cpp:41", 1, "a", date(2030, 1, 31)),
        KnownError("cuMemFree_v2", "", None, "b", None),
    )


@pytest.mark.parametrize(
    ("line", "covers"),
    [
        ("", True),
        ("pool.cpp:41", True),
        ("src/pool.cpp:41", True),
        ("/srv/src/pool.cpp:41", True),
        ("src/main.cpp:*", True),
        ("pool.cpp:4", False),
        ("ool.cpp:41", False),
    ],
)
def test_a_line_is_one_of_the_call_stack(line: str, covers: bool) -> None:
    known = KnownError("cudaMemcpy*", line, None, "a", None)
    assert known.covers("cudaMemcpyAsync", 1, FRAMES) is covers
    assert not known.covers("cudaFree", 1, FRAMES)


def test_an_entry_is_for_its_error_and_until_its_day() -> None:
    assert not KnownError("cudaFree", "", 1, "a", None).covers("cudaFree", 400, ())
    assert KnownError("cudaFree", "", 400, "a", date.max).covers("cudaFree", 400, ())
    assert not KnownError("cudaFree", "", 400, "a", date.min).covers("cudaFree", 400, ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[error]", "it is not TOML"),
        ("[[leak]]\n", "'leak' is not expected; write one table [[error]] for each known error"),
        ("error = 1", "'error' is not expected"),
        ('[[error]]\nfunction = "a"', "entry 1: reason is ''; write a text"),
        ('[[error]]\nreason = "a"', "entry 1: function is ''; write a text"),
        ('[[error]]\nfunctions = "a"', "entry 1: there is no 'functions'; write function, line, code, reason, expires"),
        (
            '[[error]]\nfunction = "f"\nreason = "a"\ncode = "1"',
            "entry 1 (f): code is '1'; write the number of an error",
        ),
        ('[[error]]\nfunction = "f"\nreason = "a"\nline = 4', "entry 1 (f): line is 4; write a text"),
        ('[[error]]\nfunction = "f"\nreason = "a"\nexpires = "x"', "entry 1 (f): expires is 'x'; write a date"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_line(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_known_errors(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    with pytest.raises(ConfigurationError, match="it can't be read"):
        read_known_errors(tmp_path / "none.toml")
