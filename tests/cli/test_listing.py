"""``quiesce list``: what there is to name, filtered, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.subjects.conftest import MANIFEST

from quiesce.allocators.oracle.rules import NAMES
from quiesce.allocators.reference.museum import FAULTS
from quiesce.backends.reference import faulty
from quiesce.cli.endings import ExitCode
from quiesce.cli.listing import KINDS
from quiesce.cli.main import main


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["list", *words]) == ExitCode.NOTHING_FOUND
    return capsys.readouterr().out


def records(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(listed(capsys, *words, "--json"))}


@pytest.mark.parametrize("what", KINDS)
def test_what_is_listed_as_text_is_listed_as_json(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = listed(capsys, what)
    for name in records(capsys, what):
        assert name in text


def test_a_case_stands_with_its_fault_its_title_and_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = listed(capsys, "cases", "squeeze_before").splitlines()
    assert line.split(maxsplit=2) == [
        "pool/squeeze_before_out_of_memory",
        "pool.no_squeeze",
        "A pool gives its cached blocks back before it reports out of memory",
    ]
    case = records(capsys, "cases", "squeeze_before")["pool/squeeze_before_out_of_memory"]
    assert (case["kind"], case["finds"]) == ("regression", "request_fits_but_out_of_memory")
    assert case["promises"] == ["exact-footprint", "reclaims-before-oom"]
    assert "(control)" in listed(capsys, "cases", "controls/*")


def test_filters_are_words_and_patterns_that_all_have_to_fit(capsys: pytest.CaptureFixture[str]) -> None:
    names = records(capsys, "cases", "pool/*", "SQUEEZE")
    assert names
    assert all(name.startswith("pool/") for name in names)
    assert "reuse/squeeze_waits_for_work_in_flight" in records(capsys, "cases", "squeeze")


def test_a_fault_stands_with_its_report_its_backend_and_its_cases(capsys: pytest.CaptureFixture[str]) -> None:
    faults = records(capsys, "faults")
    assert faults.keys() == set(FAULTS)
    one = faults["pool.no_squeeze"]
    assert one["upstream"].startswith("NVIDIA/cccl#4222")
    assert "pool/squeeze_before_out_of_memory" in one["cases"]
    assert one["backend"] == f"reference:{faulty('pool.no_squeeze').describe().name.partition(':')[2]}"


def test_rules_are_all_that_a_case_can_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert records(capsys, "rules").keys() >= NAMES


def test_backends_say_whether_they_work_and_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split(maxsplit=1) for line in listed(capsys, "backends").splitlines()]
    assert [name for name, _ in lines] == ["alpha", "beta", "cupy"]
    assert lines[-1][1].split("  ") == ["cannot work here", "no device"]
    backends = records(capsys, "backends")
    assert backends["alpha"]["capabilities"] == ["memory", "pool"]
    assert backends["alpha"]["gauges"] == {"blocks": ["claim"], "live": ["claim", "ledger"]}
    assert (backends["cupy"]["works"], backends["cupy"]["remedy"]) == (False, "install a driver")


def test_subjects_are_listed_as_by_their_command_with_names_for_backends(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = corpus / "fixtures" / "host" / "example"
    folder.mkdir(parents=True)
    (folder / "subject.toml").write_text(MANIFEST, encoding="utf-8")
    text = listed(capsys, "subjects")
    assert main(["subjects", "--list"]) == ExitCode.NOTHING_FOUND
    assert capsys.readouterr().out == text
    assert "  backend:  subject:host/example@reference:pool.no_squeeze\n" in text
    assert records(capsys, "subjects")["host/example"]["backends"] == [
        "subject:host/example@reference:pool.no_squeeze",
        "subject:host/example@reference",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cases", "pool/squeze"], "none of the cases fits 'pool/squeze'; write quiesce list cases"),
        (["faults", "pool.no_squeze"], "none of the faults fits 'pool.no_squeze'; did you mean 'pool.no_squeeze'"),
        (["backends", "alpha", "beta"], "none of the backends fits 'alpha' and 'beta'; did you mean 'alpha'?"),
    ],
)
def test_what_fits_nothing_is_answered_with_near_names(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", *words]) == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert captured.err.startswith(f"quiesce: {said}")
    assert captured.out == ""
