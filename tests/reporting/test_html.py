"""The page as text: what it says, that it is escaped, and that equal results give equal bytes."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from quiesce.model.findings import Finding, RoundReadings
from quiesce.model.results import Report, Result, Sample, Verdict
from quiesce.reporting import html
from quiesce.reporting.glossary import RULES
from quiesce.reporting.html import render_html, why_unavailable, write_html

pytest.importorskip("jinja2", reason="Jinja2 is not installed")

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)></noscript></style>\"' {{ 7*7 }} \x1b[31m\x00\u202e&lt;"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str, name: str = "") -> list[dict[str, str | None]]:
        return [
            attributes for each, attributes in self.elements if each == tag and name in (attributes.get("class") or "")
        ]


def without_values(page: str) -> str:
    return re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)


def hostile(value: Any) -> Any:
    """The same value with every text replaced by a hostile one."""
    if type(value) is str:
        return HOSTILE
    if isinstance(value, tuple):
        return tuple(hostile(item) for item in value)
    if isinstance(value, Result | Finding | Sample | RoundReadings):
        changed: Any = replace(value, **{field.name: hostile(getattr(value, field.name)) for field in fields(value)})
        return changed
    return value


def test_every_result_has_its_cell(report: Report) -> None:
    page = Elements(render_html(report))
    cells = [attributes for attributes in page.named("td", "v-") if "number" not in (attributes["class"] or "")]
    assert len(cells) == len(report.results)
    assert {attributes["class"] for attributes in cells} == {f"v-{verdict.replace(' ', '-')}" for verdict in Verdict}


def test_a_finding_says_what_a_reader_needs(report: Report) -> None:
    text = Elements(render_html(report)).text
    for words in (
        "request_fits_but_out_of_memory",
        "allocated: 134217728 of 134217728 bytes are free or cached",
        "cases/pool/squeeze_before_oom.case:14",
        "operation 1 (line 11): a = allocate 67108864",
        "quiesce run cases/pool/squeeze_before_oom.case --backend reference",
        "NVIDIA/cccl#4222",
        "1 skipped because their slot was never made",
        "opencl 1.0-1.2: vendor#7",
        "größe 字",
        "the C heap: 8,064 bytes (7.9 KiB) more after round 15 than after round 7.",
        "The growth of 1,008 bytes per round was measured over rounds 10 to 15.",
        "it lacks tape",
        "Linux x86_64",
    ):
        assert words in text


def test_every_text_is_escaped(report: Report) -> None:
    results = tuple(hostile(result) for result in report.results)
    page = render_html(Report(7, results, {HOSTILE: HOSTILE, "ended": HOSTILE, "skipped " + HOSTILE: HOSTILE}))
    elements = Elements(without_values(page))
    scripts = [attributes.get("type") for attributes in elements.named("script")]
    assert scripts == [None]  # the page's own
    assert elements.named("img") == []
    assert not [name for _, attributes in elements.elements for name in attributes if name.startswith("on")]
    assert "<script>alert(1)" in elements.text
    assert "{{ 7*7 }}" in elements.text
    assert not set("\x00\x1b\u202e") & set(page)


def test_nothing_is_asked_of_a_network(report: Report) -> None:
    page = Elements(without_values(render_html(report)))
    links = {attributes[name] for _, attributes in page.elements for name in ("href", "src") if name in attributes}
    assert all(link is not None and link.startswith(("#", "data:,")) for link in links)
    (policy,) = (each["content"] for each in page.named("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.partition("style-src")[0]


def test_equal_results_give_equal_bytes_in_any_order(report: Report) -> None:
    turned = Report(report.seed, report.results[::-1], dict(reversed(report.run.items())))
    assert render_html(turned) == render_html(report)


def test_two_runs_differ_in_what_run_holds_only(report: Report) -> None:
    other = render_html(Report(report.seed, report.results, {**report.run, "machine": "Elsewhere"}))
    assert other != render_html(report)
    assert other.replace("Elsewhere", "Linux x86_64") == render_html(report)


def test_pictures_are_part_of_the_page_and_small(report: Report) -> None:
    page = render_html(report)
    kinds = [attributes.get("data-plot") for attributes in Elements(page).named("figure")]
    assert kinds == ["timeline", "growth"]
    assert len(page) < 100_000


def test_findings_stand_before_the_matrix(report: Report) -> None:
    page = render_html(report)
    assert 0 < page.index('<h2 id="findings"') < page.index('<h2 id="matrix"')


def test_a_large_page_stays_small(report: Report, failing: Result) -> None:
    """10,000 cases on four backends with 500 findings: 40,000 of the first number and 500 of the second."""
    passed = Result("pool/a_behaviour_with_a_long_name", "A behaviour holds", "a.case", "host", Verdict.PASSED)
    rows = tuple(
        replace(passed, case=f"{passed.case}_{row}", backend=backend) for row in range(500) for backend in "abcd"
    )
    long = tuple(
        Sample(index, f"block[{index}] = allocate {index * 7919}", f"allocated at 0x{index * 104729:x}", 9, index, 0, 0)
        for index in range(300)
    )
    findings = tuple(
        replace(failing, case=f"tape/case_{row}", operations=300, timeline=long, backend="a") for row in range(50)
    )
    without, with_rows = len(render_html(Report(0, findings[:1]))), len(render_html(Report(0, findings[:1] + rows)))
    with_findings = len(render_html(Report(0, findings)))
    assert (with_rows - without) / len(rows) < 120
    assert (with_findings - without) / (len(findings) - 1) < 22_000


def test_an_empty_run_is_a_page_that_says_so() -> None:
    page = Elements(render_html(Report(0, ())))
    assert page.named("div", "headline doubtful")
    assert "Nothing was executed: no verdict" in page.text
    assert "There is no result." in page.text


def test_a_backend_on_which_nothing_ran_is_marked(report: Report) -> None:
    page = Elements(render_html(replace(report, run={**report.run, "named host": "--backend"})))
    assert page.named("tr", "empty")
    assert "NOTHING WAS EXECUTED on 'host': 1 unsupported, 1 not promised." in page.text


def test_anchors_are_unique_and_every_link_arrives(report: Report) -> None:
    page = Elements(render_html(report))
    anchors = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(anchors) == len(set(anchors))
    assert {attributes["href"] for attributes in page.named("a")} <= {f"#{anchor}" for anchor in anchors}


def test_the_page_is_written_whole(report: Report, tmp_path: Path) -> None:
    write_html(report, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_html(report)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ((), "Jinja2 missing"),
        (("jinja2",), ""),
    ],
)
def test_what_is_missing_is_named_with_what_to_install(
    there: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "find_spec", lambda module: object() if module in there else None)
    expected = f"report.html was not written: {words}; pip install 'quiesce[report]'" if words else ""
    assert why_unavailable() == expected


def test_a_page_of_leak_checks_speaks_of_tests(report: Report) -> None:
    leak = next(each for each in report.results if each.is_leak_check and each.findings)
    leaking = replace(leak, case="test_it.py::test_keeps", title="test_keeps leaks", verdict=Verdict.FAILED, reason="")
    passed = replace(leaking, case="test_it.py::test_ok", title="", verdict=Verdict.PASSED, findings=())
    run = {"started": "2026-01-01T00:00:00+00:00", "skipped cupy": "there is no device"}
    page = render_html(Report(0, (leaking, passed), run))
    shown = re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL))
    for word in ("case", "backend", "leak-check", "known upstream", "unsupported", "there is no device"):
        assert word not in shown.lower(), word
    assert "2 tests checked for leaks" in shown
    broken = {finding.rule for finding in leaking.findings}
    assert {name for name in RULES if name in shown} == broken


def test_the_digest_is_the_one_of_the_specification() -> None:
    # The example of CSP Level 3, section "Usage of hash-source": alert('Hello, world.');
    assert html.script_digest("alert('Hello, world.');") == "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
