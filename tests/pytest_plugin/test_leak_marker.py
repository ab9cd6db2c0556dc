"""The marker on ordinary tests: what grows round by round is a failure, what was warmed up once is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .conftest import Project

jsonschema = pytest.importorskip("jsonschema", reason="it comes with the extra 'test'")

SCHEMA = Path(__file__).parents[2] / "reports" / "schema" / "report.schema.json"

SUITE = """
import pytest

KEPT = []
WARM = {}

@pytest.mark.leak
def test_keeps(): KEPT.append(bytearray(4096))

@pytest.mark.leak
def test_gives_back(): bytearray(4096)

@pytest.mark.leak
def test_warms_up_once(): WARM.setdefault("table", bytearray(1 << 20))

@pytest.mark.leak
def test_cycle():
    cycle = [bytearray(4096)]
    cycle.append(cycle)
"""

COUNTED = """
import pytest

ROWS, KEPT = [], []

@pytest.mark.leak(rounds=12)
def test_keeps_rows(leak_check):
    ROWS.extend("ab")
    leak_check.gauge("rows", lambda: len(ROWS), "rows")

@pytest.mark.leak(rounds=12, gauges=["python"])
def test_keeps_memory(): KEPT.append(bytearray(4096))
"""

SPENT = """
import io, pytest

pytestmark = pytest.mark.leak

@pytest.fixture(scope="module")
def stream(): return io.StringIO("text")

def test_reads_to_the_end(stream): assert stream.read() == "text"

def test_is_wrong_every_time(): assert "text" == ""
"""

REPLACED = """
import gc, os, pathlib, pytest, time

@pytest.fixture(scope="class")
def replaced(request):
    def refuse(*_): {refusal}
    with pytest.MonkeyPatch.context() as patch:
        for place, name in {names}:
            patch.setattr(place, name, refuse)
        yield

class TestIt:
    @pytest.mark.leak(rounds=12, gauges=["descriptors"])
    def test_keeps(self, replaced): os.open("/dev/null", 0)

@pytest.mark.leak(gauges=["descriptors"])
def test_next(): pass

def test_last(): pass
"""


@pytest.mark.long
def test_only_what_grows_fails_and_names_the_site(project: Project) -> None:
    project.write("test_it.py", SUITE)
    result = project.run("test_it.py")
    result.assert_outcomes(failed=1, passed=3)
    result.stdout.fnmatch_lines(
        [
            "  rule:      a_repeated_test_leaves_nothing_behind",
            "  observed:  Python's memory grows by * bytes per round",
            "  allocated: test_it.py:8: def test_keeps(): KEPT.append(bytearray(4096))",
        ]
    )


@pytest.mark.long
def test_a_test_in_another_folder_is_named_from_where_pytest_was_started(project: Project) -> None:
    project.write("pkg/test_it.py", SUITE.partition("@pytest.mark.leak\ndef test_gives")[0])
    fixture = (
        "import pytest\n\n@pytest.fixture(autouse=True)\ndef away(monkeypatch, tmp_path): monkeypatch.chdir(tmp_path)\n"
    )
    project.write("conftest.py", fixture)
    result = project.run("pkg/test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  allocated: pkg/test_it.py:8: def test_keeps(): *"])


@pytest.mark.long
@pytest.mark.parametrize("read", ["lambda: 1 / 0", "lambda: None"])
def test_a_gauge_that_cannot_be_read_is_no_pass(project: Project, read: str) -> None:
    project.write("test_it.py", f"def test_it(leak_check): leak_check.gauge('rows', {read})\n")
    result = project.run("test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["a gauge of 'leak_check' cannot be read, so it was not judged: 'rows': *Error: *"])


@pytest.mark.long
def test_the_report_holds_the_readings_that_decided(project: Project) -> None:
    project.write("test_it.py", COUNTED)
    project.run("test_it.py", "--quiesce-report=out").assert_outcomes(failed=2)
    report = json.loads((project.path / "out" / "report.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(report)
    memory, rows = (result["findings"][0]["readings"] for result in report["results"])
    first_round = rows["first_round"]
    assert first_round >= 7  # on CPython 3.11, rounds for references to None come before
    assert rows == {
        "first_round": first_round,
        "gauge": "rows",
        "grown": [2 * (number - rows["rounds"][0]) for number in rows["rounds"]],
        "measured_from": rows["rounds"][0],
        "per_round": 2.0,
        "rounds": rows["rounds"],
        "unit": "rows",
    }
    assert (memory["gauge"], memory["unit"]) == ("Python's memory", "bytes")
    assert len(memory["grown"]) >= 8
    assert memory["per_round"] > 4096


@pytest.mark.long
def test_a_test_that_cannot_run_twice_says_so(project: Project) -> None:
    project.write("test_it.py", SPENT)
    result = project.run("test_it.py")
    result.assert_outcomes(failed=2)
    assert str(result.stdout).count("not all runs of this one ended alike") == 1


def test_a_marked_test_that_can_not_be_repeated_fails(project: Project) -> None:
    project.write(
        "test_it.py", "ROUNDS = []\n\ndef test_it(leak_check):\n    ROUNDS.append(1)\n    assert len(ROUNDS) != 2\n"
    )
    result = project.run("test_it.py")
    result.assert_outcomes(failed=1)
    assert "The first run passed. The first that failed did so in its call: " in str(result.stdout)
    assert str(result.stdout).count("not all runs of this one ended alike") == 1


SYSTEMS = """[
    (time, "sleep"), (os, "listdir"), (os, "scandir"), (os, "readlink"), (os.path, "realpath"),
    (pathlib.Path, "is_dir"), (pathlib.Path, "iterdir"), (pathlib.Path, "read_text"),
]"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere descriptors have other names")
def test_what_a_wide_fixture_replaces_the_check_has_still(project: Project) -> None:
    project.write("test_it.py", REPLACED.format(names=SYSTEMS, refusal="raise AssertionError('no system here')"))
    result = project.run("test_it.py")
    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(["  allocated: test_it.py:17: def test_keeps*", "    descriptor * on /dev/null"])


@pytest.mark.parametrize("refusal", ["raise AssertionError('never')", "pytest.fail('never')", "pytest.skip('never')"])
def test_a_check_that_cannot_be_done_says_so_and_spoils_no_other(project: Project, refusal: str) -> None:
    project.write("test_it.py", REPLACED.format(names='[(gc, "get_objects")]', refusal=refusal))
    result = project.run("test_it.py", "--quiesce-report=out")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["    - the error is one of quiesce: report it with this text"])
    report = json.loads((project.path / "out" / "report.json").read_text(encoding="utf-8"))
    first, second = report["results"]
    assert (first["verdict"], second["verdict"]) == ("inconclusive", "passed")
    assert first["reason"].startswith("the leak check itself failed: ")
    assert first["reason"].endswith(": never")
