from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.model.results import Report, Result
from quiesce.reporting.journal import Journal, read_journal
from quiesce.reporting.record import render_json
from quiesce.reporting.result_lists import ordered

jsonschema = pytest.importorskip("jsonschema", reason="it comes with the extra 'test'")

SCHEMA = Path(__file__).parents[2] / "reports" / "schema" / "report.schema.json"


def write(report: Report, path: Path) -> bytes:
    with Journal(path, seed=report.seed, run=report.run) as journal:
        for result in report.results:
            journal.add(result)
        journal.end("completed")
    return path.read_bytes()


def ended(report: Report) -> Report:
    return replace(report, run={**report.run, "ended": "completed"})


def test_report_is_rebuilt_byte_for_byte(report: Report, tmp_path: Path) -> None:
    write(report, tmp_path / "results.jsonl")
    assert render_json(read_journal(tmp_path / "results.jsonl")) == render_json(ended(report))


def test_garbage_survives_the_journal(failing: Result, tmp_path: Path) -> None:
    dirty = Report(seed=0, results=(replace(failing, reason="\udc80\x00\r\n\u2028\x85"),))
    write(dirty, tmp_path / "results.jsonl")
    assert render_json(read_journal(tmp_path / "results.jsonl")) == render_json(ended(dirty))


def test_torn_at_every_byte_it_keeps_every_complete_result(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    report = replace(report, results=report.results[1:3])
    whole = write(report, path)
    header = whole.index(b"\n") + 1
    for size in range(header, len(whole) + 1):
        path.write_bytes(whole[:size])
        complete = min(whole[:size].count(b"\n") - 1, len(report.results))
        torn = read_journal(path)
        assert len(torn.results) == complete
        assert torn.run["ended"] == ("completed" if size == len(whole) else "killed")
    assert complete == len(report.results)


def test_each_result_is_one_write(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Journal(path, seed=0, run={}) as journal:
        for number, result in enumerate(report.results, 2):
            journal.add(result)
            assert path.read_bytes().count(b"\n") == number


def test_lines_follow_the_schema_of_results(report: Report, tmp_path: Path) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/result", "$defs": schema["$defs"]})
    lines = write(report, tmp_path / "results.jsonl").splitlines()[1:-1]
    assert len(lines) == len(report.results)
    for line in lines:
        validator.validate(json.loads(line))


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_process_loses_nothing_that_was_added(report: Report, tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from quiesce.reporting.journal import Journal, read_journal\n"
        "results = read_journal(Path(sys.argv[1])).results\n"
        "journal = Journal(Path(sys.argv[2]), seed=7, run={})\n"
        "for result in results: journal.add(result)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    write(report, tmp_path / "source.jsonl")
    paths = [str(tmp_path / "source.jsonl"), str(tmp_path / "killed.jsonl")]
    finished = subprocess.run([sys.executable, "-c", program, *paths], check=False, env={**os.environ})
    assert finished.returncode == -signal.SIGKILL
    rebuilt = read_journal(tmp_path / "killed.jsonl")
    assert [result.case for result in rebuilt.results] == [result.case for result in report.results]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1: the header is missing"),
        (b'{"format": "quiesce-jour', ":1: the header is missing"),
        (b"not json\n", ":1: this is not JSON"),
        (b"[" * 100_000 + b"\n", ":1: this is not JSON"),
        (b'{"format": "other"}\n', ":1: this is not a quiesce-journal of version 1"),
        (b'{"format": "quiesce-journal", "version": 1, "run": {}}\n', ":1: this is not a quiesce-journal"),
        (b'{"format": "quiesce-journal", "version": 1, "seed": 0, "run": {}}\n{"case": 1}\n', ":2: 'case' is not"),
        (b'{"format": "quiesce-journal", "version": 1, "seed": 0, "run": {}}\n\xff\n', ":2: this is not JSON"),
        (b'{"format": "quiesce-journal", "version": 1, "seed": 0, "run": {}}\n[]\n', ":2: a result is a JSON object"),
    ],
)
def test_what_is_not_a_journal_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read_journal(path)
    assert message in str(caught.value)
    assert "; " in str(caught.value)


@pytest.mark.parametrize("key", ["verdict", "findings", "operations", "title"])
def test_a_result_that_lacks_a_key_is_refused(key: str, report: Report, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    header, first, *_ = write(report, path).splitlines()
    record = json.loads(first)
    del record[key]
    path.write_bytes(header + b"\n" + json.dumps(record).encode() + b"\n")
    with pytest.raises(ConfigurationError, match=f":2: '{key}'"):
        read_journal(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("grown", [], "'grown' is not a list of integers with a first one"),
        ("grown", [0, 1.5], "'grown' is not a list of integers"),
        ("grown", [True], "'grown' is not a list of integers"),
        ("first_round", "7", "'first_round' is not an integer"),
        ("per_round", float("nan"), "'per_round' is not a finite number"),
        ("unit", None, "'unit' is not a string"),
    ],
)
def test_readings_that_nobody_can_draw_are_refused(
    key: str, value: object, message: str, leaking: Result, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    header, line, *_ = write(Report(0, (leaking,)), path).splitlines()
    record = json.loads(line)
    record["findings"][0]["readings"][key] = value
    path.write_bytes(header + b"\n" + json.dumps(record).encode() + b"\n")
    with pytest.raises(ConfigurationError, match=f":2: {message}"):
        read_journal(path)


def test_order_of_arrival_is_kept_and_reports_order_for_themselves(report: Report, tmp_path: Path) -> None:
    backwards = replace(report, results=tuple(reversed(ordered(report.results))))
    write(backwards, tmp_path / "results.jsonl")
    rebuilt = read_journal(tmp_path / "results.jsonl")
    assert [each.case for each in rebuilt.results] == [each.case for each in backwards.results]
    assert ordered(rebuilt.results)[0].backend == "host"
