from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from typing import Any

import pytest

from quiesce.model.findings import Finding
from quiesce.model.results import Report, Result, Sample, Verdict
from quiesce.reporting.page import cards as module
from quiesce.reporting.page.cards import anchors, make_cards


def unpacked(plot: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(plot)))


def test_only_results_that_need_a_reader_have_cards(report: Report) -> None:
    assert [(card.verdict, card.case) for card in make_cards(report.results)] == [
        (Verdict.FAILED, "pool/squeeze_before_oom"),
        (Verdict.BROKEN_CASE, "tape/diamond"),
        (Verdict.KNOWN_UPSTREAM, "streams/recycled_handle"),
        (Verdict.KNOWN_UPSTREAM, "tests/test_pool.py::test_keeps[small]"),
    ]


def test_anchors_point_at_their_results(report: Report) -> None:
    assert [card.anchor for card in make_cards(report.results)] == list(anchors(report.results).values())
    assert {report.results[position].case for position in anchors(report.results)} == {
        card.case for card in make_cards(report.results)
    }


def test_a_finding_is_told_in_full(failing: Result) -> None:
    (card,) = make_cards([failing])
    (finding,) = card.findings
    assert (finding.rule, finding.sentence != "") == ("request_fits_but_out_of_memory", True)
    assert (finding.where, finding.moment) == ("cases/pool/squeeze_before_oom.case:14", "operation 3")
    assert (finding.observed, finding.allocated_by) == ("out of memory", "operation 1 (line 11): a = allocate 67108864")
    assert card.reproduce == "quiesce run cases/pool/squeeze_before_oom.case --backend reference"
    assert unpacked(card.timeline)["offending"] == [3]


def test_a_kind_is_explained_unless_a_third_party_named_it(failing: Result) -> None:
    (found,) = failing.findings
    (card,) = make_cards(
        [replace(failing, findings=(replace(found, kind="double free"), replace(found, kind="odd\nbug")))]
    )
    assert [finding.kind for finding in card.findings] == ["double free. A block is freed a second time.", "odd bug"]


def test_each_gauge_that_grows_has_its_plot(leaking: Result) -> None:
    (found,) = leaking.findings
    assert found.readings is not None
    other = replace(found, readings=replace(found.readings, gauge="threads", unit="threads", per_round=1.0))
    (card,) = make_cards([replace(leaking, findings=(found, other, replace(found, readings=None)))])
    assert [finding.picture is None for finding in card.findings] == [False, False, True]
    assert card.gist == "the C heap grows by 1,008 bytes per round; the C heap grows by 1,008 bytes per round"
    assert [finding.plot and unpacked(finding.plot)["gauge"] for finding in card.findings] == [
        "the C heap",
        "threads",
        "",
    ]
    assert [bool(finding.growth) for finding in card.findings] == [True, True, False]
    assert card.note == ""


def test_evidence_is_cleaned_and_cut_at_its_beginning(report: Report, failing: Result) -> None:
    known = next(card for card in make_cards(report.results) if card.verdict is Verdict.KNOWN_UPSTREAM)
    assert known.findings[0].evidence == "pool: 1 event\nred"
    long = replace(failing, findings=(Finding("rule", "this", "that", evidence="a" * 30_000 + "the end"),))
    (card,) = make_cards([long])
    assert card.findings[0].evidence.startswith("… (report.json holds all of it)\n")
    assert card.findings[0].evidence.endswith("athe end")


def test_a_script_element_cannot_be_ended_by_a_request(failing: Result) -> None:
    hostile = Sample(0, "</script><!--<script>", "a\u2028b", 1, 0, 0, 0)
    (card,) = make_cards([replace(failing, timeline=(hostile,))])
    assert re.fullmatch("[0-9A-Za-z+/=]+", card.timeline)
    long = tuple(replace(hostile, operation_index=index) for index in range(100))
    (card,) = make_cards([replace(failing, timeline=long, operations=100)])
    assert unpacked(card.timeline)["texts"]["50"] == "operation 50 (line 1): </script><!--<script> → a b"


def test_a_rule_that_is_broken_twice_is_named_once(failing: Result) -> None:
    (card,) = make_cards([replace(failing, findings=failing.findings * 2 + (Finding("other", "this", "that"),))])
    assert card.rules == (("request_fits_but_out_of_memory", 2), ("other", 1))


@pytest.mark.parametrize(("operations", "moment", "note"), [(3, "at the end", "None was recorded."), (0, "", "")])
def test_a_card_without_samples_says_so(operations: int, moment: str, note: str, failing: Result) -> None:
    findings = (Finding("rule", "this", "that"),)
    (card,) = make_cards([replace(failing, timeline=(), operations=operations, findings=findings)])
    assert (card.excerpt, card.timeline, card.note, card.findings[0].moment) == (None, "", note, moment)


def test_a_backend_that_counts_no_bytes_still_shows_its_operations(failing: Result) -> None:
    (card,) = make_cards([replace(failing, timeline=(Sample(3, "free a", "done", 14, None, None, None),))])
    assert card.excerpt is not None
    assert card.excerpt.columns == ()
    assert card.note == "Nobody counts bytes on this backend, so there is no timeline."


def test_beyond_the_limit_findings_stay_and_timelines_go(failing: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLOTTED_MAX", 2)
    made = list(make_cards([failing] * 4))
    assert [bool(card.timeline) for card in made] == [True, True, False, False]
    assert made[3].findings == made[0].findings
    assert made[3].note == "The first 2 findings carry plots and operations here; report.json holds those of all."


def test_beyond_the_limit_a_leak_is_told_in_words(
    failing: Result, leaking: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PLOTTED_MAX", 1)
    plain = replace(leaking, findings=(Finding("rule", "this", "that"),))
    first, second, third = make_cards([failing, leaking, plain])
    assert first.picture is not None
    assert (second.findings[0].picture, third.picture, third.findings[0].picture) == (None, None, None)
    assert "1,008 bytes per round" in second.findings[0].growth
    assert second.note.startswith("The first 1 findings carry plots")
    assert third.note == ""
