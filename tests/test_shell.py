from __future__ import annotations

import shlex

import pytest

from quiesce.model import wording


@pytest.mark.parametrize("word", ["plain", "", "a b", "it's", "größe", "command:./driver 'a b'"])
def test_what_can_be_printed_is_quoted_as_ever(word: str) -> None:
    assert wording.quote(word) == shlex.quote(word)


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
    assert wording.quote(word) == quoted
    assert wording.join(["run", word]) == f"run {quoted}"


def test_a_test_runs_again_under_what_ran_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(wording.EXEC_VARIABLE, "quiesce exec --devices 2 --")
    assert wording.pytest_command("test_a.py::test_b") == "quiesce exec --devices 2 -- pytest 'test_a.py::test_b'"


def test_the_name_of_a_test_is_quoted_in_any_case() -> None:
    assert wording.pytest_command("test_a.py::test_b") == "pytest 'test_a.py::test_b'"
    assert shlex.split(wording.pytest_command("it's.py::test_b[a b]")) == ["pytest", "it's.py::test_b[a b]"]
    assert wording.pytest_command("a\u202eb.case::host") == r"pytest $'a\342\200\256b.case::host'"
    assert wording.pytest_command("-x.case::host") == "pytest './-x.case::host'"


def test_a_path_is_no_option() -> None:
    assert (wording.operand("-x.case"), wording.operand("a/-x.case")) == ("./-x.case", "a/-x.case")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["p", "--password=it's me"], "p '--password=***'"),
        (["p", "--db-password", "abc", "x"], "p --db-password '***' x"),
        (["p", "--api-key=abc", "--auth_token=d"], "p '--api-key=***' '--auth_token=***'"),
        (["env", "HF_TOKEN=abc", "AWS_SECRET_ACCESS_KEY=d"], "env 'HF_TOKEN=***' 'AWS_SECRET_ACCESS_KEY=***'"),
        (["git", "clone", "https://user:abc@host/x"], "git clone 'https://user:***@host/x'"),
        (["run", "--backend", "command:./d --token 'a b' -n 3"], "run --backend 'command:./d --token *** -n 3'"),
        (["p", "--password", "--verbose"], "p --password --verbose"),
        (["p", "--max-tokens=5", "--tokenizer", "gpt2"], "p --max-tokens=5 --tokenizer gpt2"),
        (["PATH=/x", "AUTHOR=me", "--key=1"], "PATH=/x AUTHOR=me --key=1"),
    ],
)
def test_a_command_does_not_show_secrets(words: list[str], shown: str) -> None:
    assert wording.join(words) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run: p '--password=a b' x", "run: p '--password=***' x"),
        ("command:./d --secret=abc, version 3", "command:./d --secret=*** version 3"),
        ("expected: --token ***", "expected: --token ***"),
        ("std::token = 5, token=5", "std::token = 5, token=5"),
    ],
)
def test_a_text_does_not_show_the_secrets_of_commands_in_it(text: str, shown: str) -> None:
    assert wording.redacted(text) == shown
