"""The JUnit report: one suite for each backend, one test case for each result.

JUnit knows failure, error and skipped. *Failed* is a failure. A *broken case* is an error, and so is a result that
leaves its run without a verdict. What is otherwise neither pass nor failure is skipped with its reason. The exact
verdict is a property of every test case. The notes about a program are what the test case wrote (``system-out``): what
it held, and what was not judged or simulated.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from quiesce.files import write_atomically
from quiesce.model.findings import Finding
from quiesce.model.program_run import ProgramRun
from quiesce.model.results import Report, Result, Verdict
from quiesce.model.wording import bytes_in_words
from quiesce.reporting.program_page.holders import things_of
from quiesce.reporting.program_page.wording import short_place
from quiesce.reporting.result_lists import BackendCounts, attempt_note, count_by_backend, ordered, split_case
from quiesce.reporting.text import clean_line, failure_text


def program_notes(program: ProgramRun) -> Iterator[str]:
    """Yield the notes of a process, its calls that failed, then a line for each place that made what it held."""
    yield from map(clean_line, program.notes)
    for failed in program.failed_calls.kept:
        where = f" at {place}" if (place := short_place(failed.site)) else ""
        remark = f" ({failed.remark})" if failed.remark else ""
        yield clean_line(f"failed{remark}: {failed.count:,} x {failed}{where}")
    held = program.holdings
    moment = "held at exit" if held.at_exit else "held at its end"
    for each in held.kept:
        size = f"{bytes_in_words(each.size_bytes)} in " if each.size_bytes else ""
        call = f"{each.thing} from {each.site.call}"
        yield clean_line(f"{moment} ({each.state}): {size}{each.count:,} x {call} on device {each.device}")
    more = held.count - sum(each.count for each in held.kept)
    if more:
        yield f"{moment}: {things_of((), more)}"


def render_junit(report: Report) -> str:
    """Return the report as an XML document without times, so that equal results give equal bytes."""
    root = ET.Element("testsuites", {"name": "quiesce", **_totals(count_by_backend(report.results))})
    for backend, results in groupby(ordered(report.results), key=lambda result: result.backend):
        suite = list(results)
        element = ET.SubElement(root, "testsuite", {"name": clean_line(backend), **_totals(count_by_backend(suite))})
        properties = ET.SubElement(element, "properties")
        _add_property(properties, "seed", str(report.seed))
        for result in suite:
            _add_case(element, result)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _totals(counts: tuple[BackendCounts, ...]) -> dict[str, str]:
    def total(*verdicts: Verdict) -> int:
        return sum(each.by_verdict[verdict] for each in counts for verdict in verdicts)

    unresolved = sum(each.unresolved for each in counts)
    skipped = [verdict for verdict in Verdict if verdict is not Verdict.PASSED and not verdict.is_failure]
    return {
        "tests": str(total(*Verdict)),
        "failures": str(total(Verdict.FAILED)),
        "errors": str(total(Verdict.BROKEN_CASE) + unresolved),
        "skipped": str(total(*skipped) - unresolved),
    }


def _add_case(suite: ET.Element, result: Result) -> None:
    topic, behaviour = split_case(result.case)
    classname = ".".join(part for part in (clean_line(result.backend), *clean_line(topic).split("/")) if part)
    case = ET.SubElement(suite, "testcase", {"classname": classname, "name": clean_line(behaviour)})
    if result.path:
        case.set("file", clean_line(result.path))
    properties = ET.SubElement(case, "properties")
    _add_property(properties, "backend", result.backend)
    _add_property(properties, "verdict", result.verdict)
    for number in result.upstream:
        _add_property(properties, "upstream", number)
    for rule in dict.fromkeys(finding.rule for finding in result.findings):
        _add_property(properties, "rule", rule)
    if note := attempt_note(result):
        _add_property(properties, "attempt", note)
    if result.reproduce:
        _add_property(properties, "reproduce", result.reproduce)
    _add_verdict(case, result)
    if result.program is not None and (notes := [*program_notes(result.program)]):
        ET.SubElement(case, "system-out").text = "\n".join(notes)


def _add_property(properties: ET.Element, name: str, value: str) -> None:
    ET.SubElement(properties, "property", {"name": name, "value": clean_line(value)})


def _add_verdict(case: ET.Element, result: Result) -> None:
    if result.verdict is Verdict.PASSED:
        return
    reason = clean_line(result.reason) or "; ".join(map(_message, result.findings))
    if not result.verdict.is_failure and not result.is_unresolved:
        ET.SubElement(case, "skipped", {"type": result.verdict, "message": reason})
        return
    tag = "failure" if result.verdict is Verdict.FAILED else "error"
    element = ET.SubElement(case, tag, {"type": result.verdict, "message": reason})
    element.text = failure_text(result)


def _message(finding: Finding) -> str:
    seen = f" (seen {finding.seen:,} times)" if finding.seen > 1 else ""
    return clean_line(finding.rule) + seen


def write_junit(report: Report, path: Path) -> None:
    """Write the report to ``path`` atomically. Raises :class:`OSError`."""
    write_atomically(path, render_junit(report))
