from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from quiesce.cli.arguments import (
    folder,
    job_count,
    operation_count,
    output_file,
    seconds_number,
    seed_number,
    whole_number,
)
from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main

SAVED: list[list[str]] = [
    ["explore", "--backend", "alpha", "--save", "{}"],
    ["shrink", "--backend", "alpha", "--save", "{}", "a.case"],
    ["conformance", "--backend", "alpha", "--report", "{}"],
    ["run", "--report", "{}"],
    ["exec", "--report", "{}", "--", "program"],
    ["subjects", "--report", "{}"],
    ["import", "--report", "{}", "log"],
]
"""Commands that write to a folder which the user names."""


@pytest.mark.parametrize(
    ("convert", "text", "message"),
    [
        (whole_number, "100,000", "'100,000' is not a whole number; write digits, such as 100000"),
        (whole_number, "1e5", "'1e5' is not a whole number; write digits, such as 100000"),
        (whole_number, "1_0", "'1_0' is not a whole number; write digits, such as 100000"),
        (whole_number, "٣", "'٣' is not a whole number; write digits, such as 100000"),
        (operation_count, f"1{'0' * 26}", f"1{'0' * 26} would take years; write at most 1000000000000"),
        *(
            (seconds_number, text, f"'{text}' is no number of seconds; write one above 0 and up to 86400")
            for text in ("0", "-1", "nan", "inf", "1 s", "", "86401")
        ),
        (job_count, "0", "0 runs nothing; write at least 1"),
        (job_count, "x", "'x' is not a whole number; write digits, such as 100000"),
        *(
            (seed_number, text, f"'{text}' is not a seed; write a whole number from 0 to 18446744073709551615")
            for text in ("-1", str(1 << 64), f"1{'0' * 26}", "1_0", "٣", "")
        ),
        (operation_count, "0", "0 performs nothing; write at least 1"),
        (operation_count, "-5", "-5 performs nothing; write at least 1"),
        (operation_count, "many", "'many' is not a whole number; write digits, such as 100000"),
    ],
)
def test_what_is_no_number_is_told_with_one_that_is(convert: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        convert(text)
    assert str(refused.value) == message


def test_numbers_are_taken() -> None:
    assert (whole_number("-1"), operation_count("100000")) == (-1, 100_000)
    assert seconds_number("0.5") == 0.5
    assert (seed_number("0"), seed_number(str((1 << 64) - 1))) == (0, (1 << 64) - 1)


@pytest.mark.parametrize(
    "words",
    [
        ["run", ""],
        ["prove", ""],
        ["lint", ""],
        ["report", ""],
        ["import", ""],
        ["subjects", ""],
        ["shrink", "", "--backend", "alpha"],
        ["run", "--report", ""],
        ["explore", "--backend", "alpha", "--save", ""],
        ["explore", "--backend", "alpha", "--coverage-json", ""],
    ],
    ids=" ".join,
)
def test_an_empty_name_is_not_the_current_folder(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == ExitCode.COULD_NOT_RUN
    said = capsys.readouterr().err
    assert f"'' names nothing; write a name, '.' for the current folder; see 'quiesce {words[0]} --help'\n" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "explore", "conformance", "exec"])
def test_every_command_knows_the_same_seeds(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--seed", "-1"])
    assert "argument --seed: '-1' is not a seed; write a whole number from 0 to " in capsys.readouterr().err


@pytest.mark.parametrize("command", SAVED, ids=lambda words: words[0])
def test_a_folder_that_is_a_file_ends_the_run_before_it_starts(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("precious", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main([word.format(taken) for word in command])
    assert ended.value.code == ExitCode.COULD_NOT_RUN
    said = capsys.readouterr().err
    assert f"nothing can be written to '{taken}' (it is a file); name another folder; see 'quiesce {command[0]}" in said
    assert taken.read_text(encoding="utf-8") == "precious"


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(argparse.ArgumentTypeError, match="name another folder"):
        folder(str(tmp_path / "taken" / "below"))


def test_trying_leaves_nothing_behind(tmp_path: Path) -> None:
    assert folder(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
    assert output_file(str(tmp_path / "c" / "coverage.json")) == tmp_path / "c" / "coverage.json"
    assert folder(str(tmp_path)) == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{tmp_path}' is a folder; name a file"):
        output_file(str(tmp_path))


@pytest.mark.parametrize("command", ["explore", "conformance", "shrink"])
def test_a_second_backend_is_not_taken_for_the_first(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--backend", "alpha", "--backend", "beta"])
    assert "argument --backend: it is given twice; give it once; " in capsys.readouterr().err
