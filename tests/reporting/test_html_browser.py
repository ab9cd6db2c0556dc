"""The page in a real browser: it filters and sorts, can be read, and asks nothing of a network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.html import write_html

from .chromium import CONTRAST, NEEDS_CHROMIUM, Browser, expect, failed, opened, press, scroll_to, visible

pytestmark = [NEEDS_CHROMIUM, pytest.mark.long]


@pytest.fixture
def plain(report: Report) -> Report:
    """The report without plots: without the seconds that the first drawing takes."""
    return replace(
        report,
        results=tuple(
            replace(each, timeline=(), findings=tuple(replace(finding, readings=None) for finding in each.findings))
            for each in report.results
        ),
    )


def test_filters_narrow_the_matrix_and_the_findings(browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, plain, tmp_path) as page:
        everything = (visible(page, ".matrix tbody tr"), visible(page, ".card"))
        assert everything == (6, 4)
        press(page.get_by_role("button", name="broken case"))
        expect(page.locator("#shown")).to_have_text("1 of 6 cases, 1 of 4 findings")
        press(page.get_by_role("button", name="Reset"))
        expect(page.locator("#shown")).to_have_text("6 cases")
        page.locator("#topic").select_option("streams")
        expect(page.locator("#shown")).to_have_text("2 of 6 cases, 1 of 4 findings")
        press(page.get_by_role("button", name="Reset"))
        page.locator("#backend").select_option("host")
        expect(page.locator("#shown")).to_have_text("2 of 6 cases, 0 of 4 findings")
        assert visible(page, ".matrix thead th") == 2
        press(page.get_by_role("button", name="Reset"))
        page.keyboard.press("/")
        page.keyboard.type("REQUEST_FITS squeeze")
        expect(page.locator("#shown")).to_have_text("1 of 6 cases, 1 of 4 findings")
        page.locator("#search").fill("nothing has this name")
        expect(page.locator("#shown")).to_have_text("0 of 6 cases, 0 of 4 findings")
        expect(page.locator("#no-match")).to_be_visible()
        page.locator("#search").fill("div")  # the markup of a card is none of its words
        expect(page.locator("#shown")).to_have_text("0 of 6 cases, 0 of 4 findings")


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
        button.evaluate(
            "(button) => new MutationObserver(() => { button.dataset.said ??= button.textContent; })"
            ".observe(button, { childList: true })"
        )
        press(button)
        expect(button).to_have_attribute("data-said", "Copied")  # it says so for a moment only
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "quiesce run cases/pool/squeeze_before_oom.case --backend reference"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(scheme: str, browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, replace(plain, run={"ended": "killed"}), tmp_path) as page:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        press(page.locator("#open-all"))
        press(page.get_by_role("button", name="failed"))
        for group in page.locator("details.group").all():
            press(group.locator("summary").first)
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


def test_the_colours_can_be_chosen(browser: Browser, plain: Report, tmp_path: Path) -> None:
    with opened(browser, plain, tmp_path, color_scheme="light") as page:
        button = page.locator("#theme")
        press(button)
        press(button)
        expect(button).to_have_text("Dark")
        expect(page.locator("body")).to_have_css("background-color", "rgb(13, 17, 23)")


def test_no_width_makes_the_page_scroll_sideways(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path) as page:
        scroll_to(page.locator("figure").first)
        for width in (1300, 800, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_everything_is_there(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path, java_script_enabled=False) as page:
        assert visible(page, ".matrix tbody tr") == 6
        assert visible(page, "#filters") == 0
        expect(page.locator(".canvas svg").first).to_be_visible()
        expect(page.locator(".operations").first).to_contain_text("b = allocate 100663296")
        expect(page.locator(".reproduce").first).to_contain_text("quiesce run cases/pool/squeeze_before_oom.case")
        press(page.get_by_role("link", name="known upstream").first)
        expect(page.locator("#finding-3")).to_be_visible()


def test_ten_thousand_results_open_without_being_laid_out(browser: Browser, tmp_path: Path) -> None:
    passed = Result("pool/a", "Behaviour holds", "a.case", "host", Verdict.PASSED)
    results = tuple(
        failed(number) if number % 50 == 0 else replace(passed, case=f"pool/case_{number}") for number in range(10_000)
    )
    with opened(browser, Report(0, results), tmp_path) as page:
        rows = page.locator(".matrix tbody tr")
        assert rows.count() == 10_000
        page.locator("#matrix").scroll_into_view_if_needed()
        is_laid_out = "element => element.checkVisibility({ contentVisibilityAuto: true })"
        page.wait_for_function(is_laid_out, arg=rows.first.locator(".id").element_handle())  # in one of the next frames
        assert not rows.last.locator(".id").evaluate(is_laid_out)
        assert page.locator(".card").count() == 200
        assert page.locator(".card .operations").count() == 1
        page.locator("#search").fill("case_4999")
        expect(page.locator("#shown")).to_have_text("1 of 10000 cases, 0 of 200 findings")
