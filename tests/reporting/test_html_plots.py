"""The plots in a real browser: read out, in both colour schemes, and hostile text stays text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.model.findings import Finding, RoundReadings
from quiesce.model.results import Report, Result, Sample, Verdict
from quiesce.reporting.page.plots import NAME_LENGTH_MAX
from quiesce.reporting.result_lists import shorten_middle
from quiesce.reporting.text import clean_line

from .chromium import (
    NEEDS_CHROMIUM,
    Browser,
    expect,
    failed,
    opened,
    point_at,
    point_at_operation,
    press,
    scroll_to,
    visible,
)

pytestmark = [NEEDS_CHROMIUM, pytest.mark.long]

ATTACK = "</script></noscript><script>window.hit=1</script><img src=x onerror=window.hit=1>\u202e\x00 \u05d0\u05d1"
ATTACKS = (
    ATTACK,
    "</style></title></template></details><svg onload=window.hit=1><iframe srcdoc='<script>parent.hit=1</script>'>",
    "\" onmouseover=window.hit=1 autofocus onfocus=window.hit=1 href=javascript:window.hit=1 ' `${window.hit=1}`",
    "\x1b]8;;javascript:window.hit=1\x07\x1b[31mred \u2066\u202e\udc80\ufffe<!-- <![CDATA[ ]]> &#60;script&#62;",
    "<script>window.hit=1</script>" + "x<b>" * (64 * 1024 // 4),
)


def test_a_timeline_is_drawn_with_its_offending_operation(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path) as page:
        card = page.locator(".card").first
        scroll_to(card.locator("figure"))
        expect(card.locator(".canvas svg")).to_be_visible()
        names = card.locator(".legend bdi").all_text_contents()
        assert names == ["live", "reserved"]
        expect(card.locator(".flag")).to_have_text("✗ operation 3")
        expect(card.locator("tr.offending")).to_contain_text("b = allocate 100663296")
        point_at_operation(card, 1)
        expect(card.locator("figcaption")).to_have_text(
            "operation 1 (line 11): a = allocate 67108864 → allocated at 0x10000"
        )


def test_growth_is_drawn_for_each_gauge(browser: Browser, leaking: Result, tmp_path: Path) -> None:
    (found,) = leaking.findings
    threads = RoundReadings("threads", "threads", 7, tuple(range(64)), 28, 1.0)
    report = Report(0, (replace(leaking, findings=(found, replace(found, readings=threads))),))
    with opened(browser, report, tmp_path) as page:
        figures = page.locator("figure[data-plot=growth]")
        expect(figures).to_have_count(2)
        for number, (name, rate, decided) in enumerate(
            [
                ("the C heap", "1,008 bytes per round", "rounds 10 to 15"),
                ("threads", "1 thread per round", "rounds 28 to 70"),
            ]
        ):
            figure = figures.nth(number)
            scroll_to(figure)
            assert figure.locator(".legend bdi").all_text_contents() == [name, rate]
            expect(figure.locator(".band")).to_have_text(decided)
            expect(figure.locator("figcaption")).to_contain_text(f"The growth of {rate} was measured over {decided}.")
        point_at(figures.nth(1), "threads more")
        point_at(figures.nth(0), "KiB more")


def test_cards_wait_until_they_are_opened(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, Report(0, tuple(failed(number) for number in range(30))), tmp_path) as page:
        expect(page.locator("figure[data-awake]")).to_have_count(1)
        last = page.locator(".card").last
        expect(last.locator("noscript")).to_have_count(1)
        press(last.locator("summary").first)
        expect(page.locator("figure[data-awake]")).to_have_count(2)


def test_a_timeline_is_read_out_by_keyboard(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path) as page:
        card = page.locator(".card").first
        scroll_to(card.locator("figure"))
        card.locator(".canvas").focus()
        page.keyboard.press("Home")
        assert card.locator(".legend .then").all_text_contents() == ["64 MiB", "64 MiB"]
        page.keyboard.press("End")
        assert card.locator(".legend .then").all_text_contents() == ["0 B", "64 MiB"]
        expect(card.locator("tr.at")).to_contain_text("b = allocate 100663296")


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
        findings=(
            Finding(text, text, text, 3, 1, text, text, text, evidence=text),
            Finding(text, text, text, readings=RoundReadings(text, text, 1, (0, 3, 5), 1, 2.5)),
        ),
        operations=100,
        timeline=tuple(Sample(index, text, text, 1, 2**20, 0, 0) for index in range(100)),
    )
    return result, replace(result, verdict=Verdict.UNSUPPORTED, findings=(), timeline=(), backend="host")


def test_hostile_text_is_inert(browser: Browser, tmp_path: Path) -> None:
    results = tuple(result for text in ATTACKS for result in saying(text))
    run = {text: text for text in ATTACKS} | {f"skipped {text}": text for text in ATTACKS} | {"ended": ATTACKS[0]}
    with opened(browser, Report(0, results, run), tmp_path) as page:
        press(page.locator("#open-all"))
        cards = page.locator(".card")
        expect(cards).to_have_count(len(ATTACKS))
        named = []
        for number in range(len(ATTACKS)):
            card = cards.nth(number)
            growth, timeline = (card.locator(f"figure[data-plot={kind}]") for kind in ("growth", "timeline"))
            scroll_to(growth)
            named.append(growth.locator(".legend bdi").all_text_contents()[0])
            point_at(growth, "more")
            assert growth.locator("svg a").count() == 0
            scroll_to(timeline)
            point_at_operation(card, 2)
        assert sorted(named) == sorted(shorten_middle(clean_line(text), NAME_LENGTH_MAX) for text in ATTACKS)
        for group in page.locator("details.group").all():
            press(group.locator("summary").first)
        page.locator("#backend").focus()
        page.locator("#search").fill("<script>window.hit=1")
        expect(page.locator("#shown")).to_contain_text("of 5 cases")
        assert visible(page, ".card") == 2
        press(page.locator(".matrix thead button").first)
        assert page.evaluate("window.hit") is None
        assert page.locator("main :is(img, iframe, script:not([type]), style, svg[onload], b)").count() == 0
        assert page.locator("a:not([href^='#'])").count() == 0


def test_dark_and_light_are_two_pictures(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path, color_scheme="light") as page:
        scroll_to(page.locator("figure").first)
        pictures = []
        for scheme, ground, line in (
            ("light", "rgb(244, 246, 248)", "rgb(34, 87, 197)"),
            ("dark", "rgb(13, 17, 23)", "rgb(130, 173, 255)"),
        ):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            expect(page.locator("body")).to_have_css("background-color", ground)
            expect(page.locator(".live .line").first).to_have_css("stroke", line)
            pictures.append(page.screenshot())
    assert pictures[0] != pictures[1]
    assert min(map(len, pictures)) > 30_000


def test_on_paper_a_dark_page_is_light(browser: Browser, report: Report, tmp_path: Path) -> None:
    with opened(browser, report, tmp_path, color_scheme="dark") as page:
        scroll_to(page.locator("figure").first)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        expect(page.locator(".live .line").first).to_have_css("stroke", "rgb(34, 87, 197)")
        expect(page.locator("h1")).to_have_css("color", "rgb(192, 38, 45)")
        assert visible(page, "#filters") == 0
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        expect(page.locator(".live .line").first).to_have_css("stroke", "rgb(130, 173, 255)")
