from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.json_values import RecordError
from quiesce.reporting.record import render_json, result_from_record, write_json

jsonschema = pytest.importorskip("jsonschema", reason="it comes with the extra 'test'")

REPORTS = Path(__file__).parents[2] / "reports"
GOLDEN = REPORTS / "golden" / "report.json"
GOLDEN_PROGRAM = REPORTS / "golden" / "program.json"


def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((REPORTS / "schema" / "report.schema.json").read_text(encoding="utf-8"))
    return loaded


def object_schemas(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for item in value for found in object_schemas(item)]
    if not isinstance(value, dict):
        return []
    nested = [found for item in value.values() for found in object_schemas(item)]
    return [value, *nested] if value.get("type") == "object" else nested


def test_golden_report_is_what_is_written_today(report: Report) -> None:
    assert GOLDEN.read_bytes().decode("ascii") == render_json(report)


def test_schema_is_a_schema_and_closed_everywhere() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert len(object_schemas(schema())) == 24
    assert all("additionalProperties" in found for found in object_schemas(schema()))


def test_golden_report_and_an_empty_one_follow_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(json.loads(GOLDEN.read_text(encoding="utf-8")))
    validator.validate(json.loads(render_json(Report(seed=0, results=()))))


@pytest.mark.parametrize("place", ["", "results", "backends", "findings", "readings"])
def test_schema_refuses_an_unknown_key(place: str) -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    failed = next(result for result in document["results"] if result["findings"])
    (readings,) = (
        finding["readings"] for result in document["results"] for finding in result["findings"] if "readings" in finding
    )
    places = {
        "": document,
        "results": failed,
        "findings": failed["findings"][0],
        "readings": readings,
        "backends": document["backends"][0],
    }
    places[place]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        jsonschema.Draft202012Validator(schema()).validate(document)


def test_the_golden_report_of_a_program_is_what_is_written_today(program: Result) -> None:
    assert GOLDEN_PROGRAM.read_bytes().decode("ascii") == render_json(Report(seed=4, results=(program,)))


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("conditions",),
        ("findings_left_out", 0),
        ("memory",),
        ("memory", "series", 0),
        ("memory", "marks", 0),
        ("surroundings", 0),
        ("surroundings", 0, "calls", 0),
        ("holdings",),
        ("holdings", "kept", 0),
        ("failed_calls",),
        ("failed_calls", "kept", 0),
    ],
)
def test_what_a_program_did_is_read_back_and_nothing_else(path: tuple[str | int, ...], program: Result) -> None:
    document = json.loads(GOLDEN_PROGRAM.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert result_from_record(document["results"][0]) == program
    place: Any = document["results"][0]["program"]
    for step in path:
        place = place[step]
    lacking = next(iter(place))
    kept = place.pop(lacking)
    with pytest.raises(RecordError, match=r"is n|does not|is a JSON object"):
        result_from_record(document["results"][0])
    with pytest.raises(jsonschema.ValidationError, match=lacking):
        jsonschema.Draft202012Validator(schema()).validate(document)
    place |= {lacking: kept, "surprise": 1}
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        jsonschema.Draft202012Validator(schema()).validate(document)


def test_call_sites_follow_the_schema_and_come_back(program: Result) -> None:
    document = json.loads(render_json(Report(seed=0, results=(program,))))
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert result_from_record(document["results"][0]) == program
    site = document["results"][0]["findings"][0]["call_sites"][0]
    for found in (site, site["frames"][0]):
        found["surprise"] = 1
        with pytest.raises(jsonschema.ValidationError, match="surprise"):
            jsonschema.Draft202012Validator(schema()).validate(document)
        del found["surprise"]


def test_what_leaves_the_run_without_a_verdict_follows_the_schema_and_comes_back(unresolved: Result) -> None:
    document = json.loads(render_json(Report(seed=0, results=(unresolved,))))
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert result_from_record(document["results"][0]) == unresolved


def test_schema_names_every_verdict_and_every_count() -> None:
    definitions = schema()["$defs"]
    assert definitions["result"]["properties"]["verdict"]["enum"] == [str(verdict) for verdict in Verdict]
    assert {verdict.replace(" ", "_") for verdict in Verdict} < set(definitions["counts"]["required"])


def test_schema_refuses_a_timeline_of_a_passing_result() -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    failed = next(result for result in document["results"] if "timeline" in result)
    failed["verdict"] = "passed"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(document)


def test_equal_results_in_any_order_give_equal_bytes_apart_from_the_run(report: Report) -> None:
    results = [*report.results, replace(report.results[0], reason="the same case once more")]
    first = render_json(replace(report, results=tuple(results)))
    for seed in range(10):
        random.Random(seed).shuffle(results)
        again = json.loads(render_json(replace(report, results=tuple(results), run={"started": "later"})))
        again["run"] = report.run
        assert json.dumps(again, indent=2, sort_keys=True) + "\n" == first


def test_timeline_is_written_for_failures_only(report: Report) -> None:
    results = json.loads(render_json(report))["results"]
    assert [result["case"] for result in results if "timeline" in result] == ["pool/squeeze_before_oom"]


def test_garbage_stays_readable_and_harmless(failing: Result) -> None:
    text = render_json(Report(seed=0, results=(replace(failing, reason="\udc80\x00\x9b\u2028é"),)))
    assert text.isascii()
    assert "\x00" not in text
    assert json.loads(text)["results"][0]["reason"] == "\\udc80\x00\x9b\u2028é"


def test_a_failed_write_leaves_the_old_report_and_no_rubbish(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")

    def disk_full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quiesce.files.os.fsync", disk_full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/report\.json'"):
        write_json(report, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_replaces_the_old_report(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    write_json(report, path)
    assert path.read_bytes() == GOLDEN.read_bytes()
