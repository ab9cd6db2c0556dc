from __future__ import annotations

import shlex

import pytest

from quiesce import shell


@pytest.mark.parametrize("word", ["plain", "", "a b", "it's", "größe", "process:./driver 'a b'"])
def test_what_can_be_printed_is_quoted_as_ever(word: str) -> None:
    assert shell.quote(word) == shlex.quote(word)


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("ca \udcfe's;e", r"$'ca \376\'s;e'"),
        ("a\u202eb", r"$'a\342\200\256b'"),
        ("a\nb\\", r"$'a\012b\\'"),
        ("\x1b[2J7", r"$'\033[2J7'"),
        ("\ud800ö", r"$'\355\240\200ö'"),
    ],
)
def test_what_cannot_be_printed_is_written_in_escapes(word: str, quoted: str) -> None:
    assert shell.quote(word) == quoted
    assert shell.join(["run", word]) == f"run {quoted}"


def test_a_path_is_no_option() -> None:
    assert (shell.operand("-x.case"), shell.operand("a/-x.case")) == ("./-x.case", "a/-x.case")
