from __future__ import annotations

import shlex

import pytest

from quiesce import shell


@pytest.mark.parametrize("word", ["plain", "", "a b", "it's", "größe", "command:./driver 'a b'"])
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


def test_a_test_runs_again_under_what_ran_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(shell.EXEC_VARIABLE, "quiesce exec --devices 2 --")
    assert shell.pytest_command("test_a.py::test_b") == "quiesce exec --devices 2 -- pytest 'test_a.py::test_b'"


def test_the_name_of_a_test_is_quoted_in_any_case() -> None:
    assert shell.pytest_command("test_a.py::test_b") == "pytest 'test_a.py::test_b'"
    assert shlex.split(shell.pytest_command("it's.py::test_b[a b]")) == ["pytest", "it's.py::test_b[a b]"]
    assert shell.pytest_command("a\u202eb.case::host") == r"pytest $'a\342\200\256b.case::host'"
    assert shell.pytest_command("-x.case::host") == "pytest './-x.case::host'"


def test_a_path_is_no_option() -> None:
    assert (shell.operand("-x.case"), shell.operand("a/-x.case")) == ("./-x.case", "a/-x.case")
