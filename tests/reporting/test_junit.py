from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.junit import render_junit, write_junit

GOLDEN_CASE = """\
    <testcase classname="reference.pool" name="squeeze_before_oom" file="cases/pool/squeeze_before_oom.case">
      <properties>
        <property name="backend" value="reference" />
        <property name="verdict" value="failed" />
        <property name="upstream" value="NVIDIA/cccl#4222" />
        <property name="rule" value="request_fits_but_out_of_memory" />
        <property name="reproduce" value="quiesce run cases/pool/squeeze_before_oom.case --backend reference" />
      </properties>
      <failure type="failed" message="request_fits_but_out_of_memory">"""


def child_of(report: Report, verdict: Verdict) -> str | None:
    root = ET.fromstring(render_junit(report))
    for case in root.iter("testcase"):
        values = {item.get("name"): item.get("value") for item in case.iter("property")}
        if values["verdict"] == verdict:
            return next((child.tag for child in case if child.tag != "properties"), None)
    raise AssertionError(f"no test case has the verdict {verdict}")


def test_message_says_how_often_a_rule_was_broken(program: Result) -> None:
    failure = ET.fromstring(render_junit(Report(seed=4, results=(program,)))).find(".//failure")
    assert failure is not None
    assert failure.get("message") == "freed_memory_is_not_used (seen 25 times)"


def test_failure_reads_as_the_golden_text(report: Report) -> None:
    assert GOLDEN_CASE in render_junit(report)


def test_every_verdict_has_its_element(report: Report) -> None:
    assert {verdict: child_of(report, verdict) for verdict in Verdict} == {
        Verdict.PASSED: None,
        Verdict.FAILED: "failure",
        Verdict.BROKEN_CASE: "error",
        Verdict.UNSUPPORTED: "skipped",
        Verdict.NOT_PROMISED: "skipped",
        Verdict.KNOWN_UPSTREAM: "skipped",
        Verdict.INCONCLUSIVE: "skipped",
    }


def test_totals_are_those_of_the_elements(report: Report) -> None:
    root = ET.fromstring(render_junit(report))
    for element in (root, *root.iter("testsuite")):
        assert element.get("tests") == str(len(list(element.iter("testcase"))))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert element.get(attribute) == str(len(list(element.iter(tag))))
    assert [suite.get("name") for suite in root.iter("testsuite")] == ["host", "leak-check", "opencl", "reference"]


def test_what_leaves_the_run_without_a_verdict_is_an_error(unresolved: Result) -> None:
    harmless = replace(unresolved, case="./helper", must_conclude=False)
    root = ET.fromstring(render_junit(Report(seed=0, results=(unresolved, harmless))))
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "1", "1")
    (error,) = root.iter("error")
    assert (error.get("type"), error.get("message")) == ("inconclusive", "nothing was tested")


def test_any_text_makes_a_well_formed_document(failing: Result, tmp_path: Path) -> None:
    every = "".join(map(chr, [*range(0x3000), 0xD800, 0xDFFF, 0xFFFE, 0xFFFF, 0x1F388, 0x1FFFE, 0x10FFFF]))
    finding = replace(failing.findings[0], rule=every, observed=every, evidence=every, request=every)
    dirty = replace(failing, case=every, path=every, backend=every, reason=every, reproduce=every, findings=(finding,))
    write_junit(Report(seed=0, results=(dirty,)), tmp_path / "junit.xml")
    (case,) = ET.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    message = case.find("failure")
    assert message is not None
    assert "🎈" in (message.text or "")
    assert "]]>" not in (message.text or "")


def test_equal_results_in_any_order_give_equal_documents(report: Report) -> None:
    backwards = replace(report, results=tuple(reversed(report.results)), run={})
    assert render_junit(backwards) == render_junit(report)


def test_empty_report_is_a_document() -> None:
    assert ET.fromstring(render_junit(Report(seed=0, results=()))).get("tests") == "0"
