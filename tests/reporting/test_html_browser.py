"""The page in a real browser: it draws, filters and sorts, asks nothing of a network, and hostile text stays text."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quiesce.findings import Finding
from quiesce.reporting.html import write_html
from quiesce.results import Report, Result, Sample, Verdict

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("plotly", reason="Plotly is not installed")
pytest.importorskip("playwright", reason="Playwright, which drives the browser, is not installed")

from playwright.sync_api import Browser, Page, expect, sync_playwright


def find_chromium() -> str | None:
    """A Chromium that starts; a distribution may have a program of that name that only says where to get one."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


CHROMIUM = find_chromium()
expect.set_options(timeout=30_000)  # a busy machine is slow; nothing is concluded from time
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium that starts is on PATH")

ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",  # root may not use the sandbox, and the page is ours
)
ATTACK = "</script></noscript><script>window.hit=1</script><img src=x onerror=window.hit=1>\u202e\x00 \u05d0\u05d1"
ATTACKS = (
    ATTACK,
    "</style></title></template></details><svg onload=window.hit=1><iframe srcdoc='<script>parent.hit=1</script>'>",
    "\" onmouseover=window.hit=1 autofocus onfocus=window.hit=1 href=javascript:window.hit=1 ' `${window.hit=1}`",
    "\x1b]8;;javascript:window.hit=1\x07\x1b[31mred \u2066\u202e\udc80\ufffe<!-- <![CDATA[ ]]> &#60;script&#62;",
    "<script>window.hit=1</script>" + "x<b>" * (64 * 1024 // 4),
)
CONTRAST = """() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  function rgba(colour) {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  }
  const over = ([r, g, b, a], under) => [r, g, b].map((part, index) => part * a + under[index] * (1 - a));
  const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  function ground(element) {
    const layers = [];
    for (let each = element; each; each = each.parentElement) layers.unshift(getComputedStyle(each).backgroundColor);
    return layers.map(rgba).reduce((under, layer) => over(layer, under), [255, 255, 255]);
  }
  const faults = [];
  let seen = 0;
  for (const element of document.querySelectorAll("body *:not(script, svg *)")) {
    const says = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim());
    if (!says || !element.checkVisibility({ opacityProperty: true }) || element.disabled) continue;
    seen += 1;
    const behind = ground(element), text = over(rgba(getComputedStyle(element).color), behind);
    const [high, low] = [luminance(behind), luminance(text)].sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    const name = `${element.tagName}.${element.className}: ${element.textContent.slice(0, 40)}`;
    if (contrast < 4.5) faults.push(`${contrast.toFixed(2)} for ${name}`);
  }
  return [seen, faults];
}"""
"""WCAG 2.2, success criterion 1.4.3: how many elements were judged, and those whose text has a contrast below 4.5."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield opened
        opened.close()


@pytest.fixture
def plain(report: Report) -> Report:
    """The report without timelines: without the seconds that the first drawing takes."""
    return replace(report, results=tuple(replace(result, timeline=()) for result in report.results))


@contextmanager
def opened(browser: Browser, report: Report, directory: Path, **options: Any) -> Iterator[Page]:
    """The report in a new profile; on leaving, the page must have been silent and have asked for itself only."""
    path = directory / "report.html"
    write_html(report, path)
    context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **options})
    said: list[str] = []
    asked: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert said == []
    # Saving a picture and the empty icon stay inside the page: neither leaves this machine.
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [path.as_uri()]


def failed(number: int, backend: str = "host") -> Result:
    return Result(
        case=f"pool/case_{number}",
        title=f"Behaviour {number} holds",
        path=f"cases/pool/case_{number}.case",
        backend=backend,
        verdict=Verdict.FAILED,
        findings=(Finding("rule", "this", "that", operation_index=3, line=9, request="free a"),),
        operations=4,
        reproduce=f"quiesce run cases/pool/case_{number}.case --backend {backend}",
        timeline=tuple(Sample(index, "free a", "done", 9, index * 2**20, 2**22, 0) for index in range(4)),
    )


def visible(page: Page, selector: str) -> int:
    count: int = page.locator(selector).filter(visible=True).count()
    return count


def test_a_timeline_is_drawn_with_its_offending_operation(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path) as page:
        card = page.locator(".card").first
        card.locator("figure").scroll_into_view_if_needed()
        expect(card.locator("figure[data-drawn] svg.main-svg").first).to_be_visible()
        names = card.locator(".legendtext").all_text_contents()
        assert names == ["live", "reserved"]
        expect(card.locator(".annotation-text")).to_have_text("✗ operation 3")
        expect(card.locator("tr.offending")).to_contain_text("b = allocate 100663296")
        card.locator("tr[data-index='1']").hover()
        expect(card.locator("figcaption")).to_have_text(
            "operation 1 (line 11): a = allocate 67108864 → allocated at 0x10000"
        )


def test_timelines_wait_until_they_are_looked_at(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, Report(0, tuple(failed(number) for number in range(30))), tmp_path) as page:
        page.locator("figure").first.scroll_into_view_if_needed()
        expect(page.locator("figure[data-drawn]")).to_have_count(1)
        last = page.locator(".card").last
        expect(last.locator("noscript")).to_have_count(1)
        last.locator("summary").first.click()
        last.locator("figure").scroll_into_view_if_needed()
        expect(page.locator("figure[data-drawn]")).to_have_count(2)


def test_filters_narrow_the_matrix_and_the_findings(browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, plain, tmp_path) as page:
        everything = (visible(page, ".matrix tbody tr"), visible(page, ".card"))
        assert everything == (5, 3)
        page.get_by_role("button", name="broken case").click()
        expect(page.locator("#shown")).to_have_text("1 of 5 cases, 1 of 3 findings")
        page.get_by_role("button", name="Reset").click()
        expect(page.locator("#shown")).to_have_text("5 cases")
        page.locator("#topic").select_option("streams")
        expect(page.locator("#shown")).to_have_text("2 of 5 cases, 1 of 3 findings")
        page.get_by_role("button", name="Reset").click()
        page.locator("#backend").select_option("host")
        expect(page.locator("#shown")).to_have_text("2 of 5 cases, 0 of 3 findings")
        assert visible(page, ".matrix thead th") == 2
        page.get_by_role("button", name="Reset").click()
        page.keyboard.press("/")
        page.keyboard.type("REQUEST_FITS squeeze")
        expect(page.locator("#shown")).to_have_text("1 of 5 cases, 1 of 3 findings")
        page.locator("#search").fill("nothing has this name")
        expect(page.locator("#shown")).to_have_text("0 of 5 cases, 0 of 3 findings")
        expect(page.locator("#no-match")).to_be_visible()
        page.locator("#search").fill("div")  # the markup of a card is none of its words
        expect(page.locator("#shown")).to_have_text("0 of 5 cases, 0 of 3 findings")


def test_a_verdict_that_did_not_occur_cannot_be_chosen(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, Report(0, (replace(failed(1), timeline=()),)), tmp_path) as page:
        assert page.locator(".chip:enabled").all_text_contents() == ["failed 1"]
        expect(page.locator(".chip:disabled")).to_have_count(6)


def test_a_heading_that_is_jumped_to_is_not_covered(browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, plain, tmp_path) as page:
        for width in (1400, 1150, 700):
            page.set_viewport_size({"width": width, "height": 500})
            page.locator("nav").get_by_role("link", name="Findings").click()
            covers = page.evaluate(
                "() => { const box = document.querySelector('#findings').getBoundingClientRect();"
                " return document.elementFromPoint(box.left + 5, box.top + 5).id }"
            )
            assert covers == "findings"


def test_columns_sort_both_ways_with_the_keyboard(browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, plain, tmp_path) as page:
        names = page.locator(".matrix tbody .id")
        before = names.all_text_contents()
        assert before == sorted(before)
        page.get_by_role("button", name="Case", exact=True).press("Enter")
        assert names.all_text_contents() == before[::-1]
        head = page.locator(".matrix thead th", has_text="reference")
        head.get_by_role("button").press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert names.all_text_contents()[:2] == ["pool/squeeze_before_oom", "tape/diamond"]


def test_a_cell_leads_to_its_finding(browser: Browser, tmp_path: Path) -> None:
    results = tuple(replace(failed(number), timeline=()) for number in (1, 2))
    with opened(browser, Report(0, results), tmp_path) as page:
        second = page.locator(".card").nth(1)
        assert second.get_attribute("open") is None
        page.get_by_role("link", name="failed").nth(1).press("Enter")
        expect(second.locator(".reproduce code")).to_be_visible()
        expect(second.locator("summary").first).to_be_focused()
        second.locator("summary").first.press("Enter")
        expect(second.locator(".reproduce code")).to_be_hidden()


def test_the_reproduce_command_is_copied(browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, plain, tmp_path, permissions=["clipboard-read", "clipboard-write"]) as page:
        button = page.locator("button.copy").first
        button.click()
        expect(button).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "quiesce run cases/pool/squeeze_before_oom.case --backend reference"


def saying(text: str) -> tuple[Result, Result]:
    """A failed and an unsupported result that say one text wherever they can say anything."""
    result = replace(
        failed(1, text),
        case=f"pool/{text}",
        title=text,
        path=text,
        reason=text,
        reproduce=text,
        upstream=(text,),
        findings=(Finding(text, text, text, 3, 1, text, text, text, evidence=text),),
        operations=100,
        timeline=tuple(Sample(index, text, text, 1, 2**20, 0, 0) for index in range(100)),
    )
    return result, replace(result, verdict=Verdict.UNSUPPORTED, findings=(), timeline=(), backend="host")


def test_hostile_text_is_inert(browser: Browser, tmp_path: Path) -> None:
    results = tuple(result for text in ATTACKS for result in saying(text))
    run = {text: text for text in ATTACKS} | {f"skipped {text}": text for text in ATTACKS} | {"ended": ATTACKS[0]}
    with opened(browser, Report(0, results, run), tmp_path) as page:
        page.locator("#open-all").click()
        cards = page.locator(".card")
        expect(cards).to_have_count(len(ATTACKS))
        for number in range(len(ATTACKS)):
            card = cards.nth(number)
            card.locator("figure").scroll_into_view_if_needed()
            expect(card.locator("figure[data-drawn]")).to_be_visible()
            card.locator("tr[data-index='3']").hover()
            expect(card.locator("figcaption")).to_contain_text("operation 3")
        for group in page.locator("details.group").all():
            group.locator("summary").first.click()
        page.locator("#backend").focus()
        page.locator("#search").fill("<script>window.hit=1")
        expect(page.locator("#shown")).to_contain_text("of 5 cases")
        assert visible(page, ".card") == 2
        page.locator(".matrix thead button").first.click()
        assert page.evaluate("window.hit") is None
        assert page.locator("main :is(img, iframe, script:not([type]), style, svg[onload], b)").count() == 0
        assert page.locator("a:not([href^='#'])").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(scheme: str, browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, replace(plain, run={"ended": "killed"}), tmp_path) as page:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.locator("#open-all").click()
        page.get_by_role("button", name="failed").click()
        for group in page.locator("details.group").all():
            group.locator("summary").first.click()
        seen, faults = page.evaluate(CONTRAST)
        assert faults == []
        assert seen > 150
        page.add_style_tag(content=".rule { color: color-mix(in srgb, var(--text) 30%, var(--surface)); }")
        assert page.evaluate(CONTRAST)[1] != []


def test_a_script_that_was_smuggled_in_does_not_run(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_html(Report(0, (failed(1),)), path)
    path.write_text(path.read_text("utf-8").replace("<main", "<script>window.hit=1</script><main"), "utf-8")
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    assert page.evaluate("window.hit") is None
    assert "Content Security Policy" in said[0]
    page.close()


def test_dark_and_light_are_two_pictures(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path, color_scheme="light") as page:
        page.locator("figure").first.scroll_into_view_if_needed()
        expect(page.locator("figure[data-drawn]")).to_be_visible()
        pictures = []
        for scheme, ground, line in (
            ("light", "rgb(244, 246, 248)", "rgb(34, 87, 197)"),
            ("dark", "rgb(13, 17, 23)", "rgb(130, 173, 255)"),
        ):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            expect(page.locator("body")).to_have_css("background-color", ground)
            expect(page.locator("path.js-line").first).to_have_css("stroke", line)
            pictures.append(page.screenshot())
    assert pictures[0] != pictures[1]
    assert min(map(len, pictures)) > 30_000


def test_on_paper_a_dark_page_is_light(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path, color_scheme="dark") as page:
        page.locator("figure").first.scroll_into_view_if_needed()
        expect(page.locator("figure[data-drawn]")).to_be_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        expect(page.locator("path.js-line").first).to_have_css("stroke", "rgb(34, 87, 197)")
        expect(page.locator("h1")).to_have_css("color", "rgb(192, 38, 45)")
        assert visible(page, "#filters") == 0
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        expect(page.locator("path.js-line").first).to_have_css("stroke", "rgb(130, 173, 255)")


def test_the_colours_can_be_chosen(browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, plain, tmp_path, color_scheme="light") as page:
        button = page.locator("#theme")
        button.click()
        button.click()
        expect(button).to_have_text("Dark")
        expect(page.locator("body")).to_have_css("background-color", "rgb(13, 17, 23)")


def test_no_width_makes_the_page_scroll_sideways(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path) as page:
        page.locator("figure").first.scroll_into_view_if_needed()
        expect(page.locator("figure[data-drawn]")).to_be_visible()
        for width in (1300, 800, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_everything_but_the_picture_is_there(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path, java_script_enabled=False) as page:
        assert visible(page, ".matrix tbody tr") == 5
        assert visible(page, "#filters") == 0
        expect(page.locator(".operations").first).to_contain_text("b = allocate 100663296")
        expect(page.locator(".reproduce").first).to_contain_text("quiesce run cases/pool/squeeze_before_oom.case")
        page.get_by_role("link", name="known upstream").click()
        expect(page.locator("#finding-3")).to_be_visible()


def test_ten_thousand_results_open_without_being_laid_out(browser: Browser, tmp_path: Path) -> None:
    passed = Result("pool/a", "Behaviour holds", "a.case", "host", Verdict.PASSED)
    results = tuple(
        failed(number) if number % 50 == 0 else replace(passed, case=f"pool/case_{number}") for number in range(10_000)
    )
    with opened(browser, Report(0, results), tmp_path) as page:
        rows = page.locator(".matrix tbody tr")
        assert rows.count() == 10_000
        is_laid_out = "element => element.checkVisibility({ contentVisibilityAuto: true })"
        assert rows.first.locator(".id").evaluate(is_laid_out)
        assert not rows.last.locator(".id").evaluate(is_laid_out)
        assert page.locator(".card").count() == 200
        assert page.locator(".card .operations").count() == 1
        page.locator("#search").fill("case_4999")
        expect(page.locator("#shown")).to_have_text("1 of 10000 cases, 0 of 200 findings")
