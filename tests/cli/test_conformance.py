"""The command: its exit codes, its reports, and the failing sequences that it keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.allocators.cases.parser import parse_case
from quiesce.allocators.execution import run_case
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.backends.registry import Unusable, Usable
from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.backend import Backend, Capability, Closing, Context, Description, DeviceProfile, Promise, Reply
from quiesce.model.gauges import Readings
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Unsupported
from quiesce.model.rules import RULES

FEW = ["--operations", "400"]


class Nothing:
    """It claims nothing, counts nothing and serves nothing."""

    def describe(self) -> Description:
        return Description("nothing", "1", frozenset())

    def open(self, profile: DeviceProfile) -> Context:
        return self

    def perform(self, operation: Operation) -> Reply:
        return Reply(Unsupported("nothing at all"))

    def readings(self) -> Readings:
        return {}

    def close(self) -> Closing:
        return Closing()


class Little:
    """The reference or a faulty one, claiming little enough to be examined at once."""

    def __init__(self, backing: Backend) -> None:
        self._backing = backing

    def describe(self) -> Description:
        claims = frozenset({Capability.MEMORY, Capability.POOL, Capability.CAPACITY, Capability.BACKING_LEDGER})
        promises = frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.TRIMS_TO_ZERO})
        return replace(self._backing.describe(), capabilities=claims, promises=promises)

    def open(self, profile: DeviceProfile) -> Context:
        return self._backing.open(profile)


BACKENDS: dict[str, Backend] = {
    "good": Little(reference()),
    "bad": Little(faulty("pool.no_squeeze")),
    "nothing": Nothing(),
}


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    def probe(name: str, _: float | None) -> Usable | Unusable:
        if name not in BACKENDS:
            return Unusable(name, "no device", "plug one in")
        return Usable(name, BACKENDS[name], BACKENDS[name].describe())

    monkeypatch.setattr("quiesce.cli.selection.probe_backend", probe)
    monkeypatch.setattr("quiesce.cli.conformance.why_unavailable", lambda: "")


@pytest.mark.parametrize(
    ("name", "code", "last"),
    [
        ("nothing", ExitCode.COULD_NOT_RUN, "nothing is unproven: "),
        ("good", ExitCode.NOTHING_FOUND, "good conforms: "),
        ("bad", ExitCode.FINDINGS, "bad does not conform: "),
    ],
)
def test_the_exit_code_says_what_it_means(
    name: str, code: ExitCode, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", "--backend", name, *FEW]) == code
    assert capsys.readouterr().out.splitlines()[-1].startswith(last)


def test_reports_hold_every_result_and_the_failing_sequences_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert (
        main(["conformance", "--backend", "bad", "--operations", "3000", "--report", str(folder)]) == ExitCode.FINDINGS
    )
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    names = {result["case"] for result in report["results"]}
    assert {f"contract/{rule}" for rule in RULES if rule != "backend_answers_without_raising"} <= names
    assert {"generated/valid_sequences", "sweep/growth/capacity"} <= names
    saved = sorted((folder / "found").glob("*.case"))
    text = capsys.readouterr().out
    assert saved
    for path in saved:
        assert path.as_posix() in text
        case = parse_case(path)
        assert [finding.rule for finding in run_case(case, BACKENDS["bad"]).findings] == [case.finds]


def test_failing_sequences_are_shown_where_they_are_not_saved(capsys: pytest.CaptureFixture[str]) -> None:
    main(["conformance", "--backend", "bad", "--operations", "3000"])
    assert "finds:    request_fits_but_out_of_memory" in capsys.readouterr().out


def test_a_backend_that_cannot_work_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--backend", "absent"]) == ExitCode.COULD_NOT_RUN
    assert capsys.readouterr().err == "quiesce: backend 'absent' cannot work here: no device; plug one in\n"


def test_an_interruption_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("quiesce.allocators.conformance.run.run_campaign", interrupted)
    folder = tmp_path / "out"
    assert main(["conformance", "--backend", "good", "--report", str(folder)]) == ExitCode.INTERRUPTED
    assert "interrupted: " in capsys.readouterr().err
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["run"]["ended"] == "interrupted"
    assert len((folder / "results.jsonl").read_text(encoding="utf-8").splitlines()) > 10
