from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from quiesce.allocators.cases.parser import FILE_BYTES_MAX, LINE_CHARACTERS_MAX, read_source, split_lines
from quiesce.model.errors import CaseError


def _written(folder: Path, data: bytes) -> Path:
    path = folder / "x.case"
    path.write_bytes(data)
    return path


def test_utf8_text_is_returned_as_it_is(tmp_path: Path) -> None:
    assert read_source(_written(tmp_path, "title: Größe\n".encode())) == "title: Größe\n"


def test_a_byte_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"x\.case:2: byte 0xff is not UTF-8; save the file as UTF-8"):
        read_source(_written(tmp_path, b"title: a\nkind: \xff\n"))


def test_utf16_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"x\.case:1: the file is UTF-16"):
        read_source(_written(tmp_path, "title: a\n".encode("utf-16")))


def test_a_missing_file_is_a_case_error(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"absent\.case:1: the file cannot be read \(No such file"):
        read_source(tmp_path / "absent.case")


def test_a_path_with_a_nul_is_a_case_error() -> None:
    with pytest.raises(CaseError):
        read_source(Path("x\0y.case"))


def test_a_folder_is_a_case_error(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="not a regular file"):
        read_source(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes are files on POSIX only")
def test_a_pipe_is_refused_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.case")
    with pytest.raises(CaseError, match="not a regular file"):
        read_source(tmp_path / "pipe.case")


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "huge.case"
    with path.open("wb") as file:
        file.truncate(100 << 20)

    def no_open(*_: object, **__: object) -> None:
        raise AssertionError("the file was opened")

    monkeypatch.setattr(Path, "open", no_open)
    with pytest.raises(CaseError, match=rf"{100 << 20:,} bytes.*at most {FILE_BYTES_MAX:,}"):
        read_source(path)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("title: a\r\n", 1, "CRLF"),
        ("a\n\tb\n", 2, "tab"),
        ("a\nb\nc\0\n", 3, "NUL"),
        ("\ufefftitle: a", 1, "byte order mark"),
        ("a\x1b[31m", 1, r"U\+001B"),
        ("a\u202eb", 1, r"U\+202E"),
        ("a\u2028b", 1, r"U\+2028"),
        ("a\rb", 1, r"U\+000D"),
        ("\n" + "x" * (LINE_CHARACTERS_MAX + 1), 2, "1001 characters"),
    ],
)
def test_what_no_line_may_hold_is_named(text: str, line: int, what: str) -> None:
    with pytest.raises(CaseError, match=what) as caught:
        split_lines(text, "x.case")
    assert caught.value.line == line


def test_text_above_the_limit_is_refused() -> None:
    with pytest.raises(CaseError, match="too large"):
        split_lines("#\n" * FILE_BYTES_MAX, "x.case")
