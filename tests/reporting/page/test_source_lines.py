"""Quoted source in pages and texts: what the report says, cleaned and bounded; no file is opened for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.model.findings import Finding, Quotation
from quiesce.model.results import Result, Verdict
from quiesce.reporting.page.excerpt import QUOTATIONS_MAX, QuotedSource, SourceLine, quoted_sources
from quiesce.reporting.text import finding_text

QUOTED = Quotation("src/scale.cu", 6, 5, ("if (i <= n)", "    a[i] *= 2;", "}"))


def found(*quoted: Quotation, allocated_by: str = "") -> Finding:
    return Finding("rule", "it lives", "it died", allocated_by=allocated_by, quoted=quoted)


def test_the_lines_of_the_report_are_shown() -> None:
    assert quoted_sources(found(QUOTED)) == (
        QuotedSource(
            "src/scale.cu:6",
            (SourceLine(5, "if (i <= n)", False), SourceLine(6, "    a[i] *= 2;", True), SourceLine(7, "}", False)),
        ),
    )


def test_what_anybody_may_have_written_is_cleaned_and_bounded() -> None:
    hostile = Quotation("a\x1b[31m.cu", 1, 1, ("\x1b[2Jx\r", *("y" * 9_000,) * 90))
    (shown, *others) = quoted_sources(found(*[hostile] * 50))
    assert len(others) == QUOTATIONS_MAX - 1
    assert shown.place == "a.cu:1"
    assert shown.lines[0].text == "x"
    assert len(shown.lines) == 20
    assert max(len(line.text) for line in shown.lines) == 161


def test_a_place_alone_opens_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "config"
    secret.write_text("token = 1\n", encoding="utf-8")
    assert quoted_sources(found(allocated_by=f"{secret}:1: token = 1")) == ()


@pytest.mark.parametrize(("allocated_by", "is_shown"), [("", True), ("src/scale.cu:6: a[i] *= 2;", False)])
def test_a_text_marks_the_line_unless_it_has_said_it(allocated_by: str, is_shown: bool) -> None:
    finding = found(QUOTED, allocated_by=allocated_by)
    result = Result("case", "", "", "cuda:13", Verdict.FAILED, findings=(finding,))
    lines = ["  source:    src/scale.cu:6", "      5 | if (i <= n)", "    > 6 |     a[i] *= 2;", "      7 | }"]
    assert ("\n".join(lines) in finding_text(result, finding)) == is_shown
