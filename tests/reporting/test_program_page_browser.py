"""The page of a program in a real browser: readable in light, dark and on a phone, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quiesce.model.findings import CallSite, Finding, Frame
from quiesce.model.program_run import Event, Holding, MemorySeries, ObservedCall, Surroundings
from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.html import render_html

from .chromium import CONTRAST, NEEDS_CHROMIUM, Browser, Locator, expect, opened, press, visible
from .program_page.test_out_of_memory import REFUSED
from .test_html_plots import ATTACKS

pytestmark = [NEEDS_CHROMIUM, pytest.mark.long]

RACE = Finding(
    "conflicting_uses_are_ordered",
    "cudaMemcpyAsync (call 4) on stream 1 before cudaMemsetAsync (call 6) on stream 2",
    "nothing orders the two, and both use 1,048,576 bytes (1 MiB)",
    operation_index=6,
    request="cudaMemsetAsync",
    call_sites=(
        CallSite("earlier use", "cudaMemcpyAsync", 4, (Frame("load", "/src/train.py", 30),)),
        CallSite("later use", "cudaMemsetAsync", 6, (Frame("clear", "/src/train.py", 33),)),
    ),
)


def box_of(element: Locator) -> Mapping[str, float]:
    """Where an element is that can be seen."""
    box: Any = element.bounding_box()
    assert isinstance(box, dict)
    return box


@pytest.fixture
def racing(program: Result) -> Report:
    """A report of one process with a race, and with a use after free."""
    return Report(4, (replace(program, findings=(*program.findings, RACE)),), {"started": "2026-01-01T00:00:00+00:00"})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 390])
def test_every_text_can_be_read_and_nothing_is_beside_the_page(
    scheme: str, width: int, browser: Browser, racing: Report, tmp_path: Path
) -> None:
    size = {"width": width, "height": 900}
    with opened(browser, racing, tmp_path, viewport=size, color_scheme=scheme) as page:
        for detail in page.locator("details").all():
            press(detail.locator("summary").first)
        page.locator(".canvas").focus()
        page.keyboard.press("End")
        seen, faults = page.evaluate(CONTRAST)
        assert faults == []
        assert seen > 80
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.add_style_tag(content=".sites .where { color: color-mix(in srgb, var(--text) 30%, var(--surface)); }")
        assert page.evaluate(CONTRAST)[1] != []
        page.add_style_tag(content="main { min-width: 2000px }")
        assert page.evaluate("document.documentElement.scrollWidth") > width


def test_both_stacks_of_a_race_stand_side_by_side(browser: Browser, racing: Report, tmp_path: Path) -> None:
    with opened(browser, racing, tmp_path) as page:
        finding = page.locator("#finding-2")
        earlier, later = finding.locator(".site").all()
        expect(earlier.locator(".place")).to_contain_text("load /src/train.py:30")
        expect(later.locator(".place")).to_contain_text("clear /src/train.py:33")
        boxes = [box_of(earlier), box_of(later)]
        assert boxes[0]["y"] == boxes[1]["y"]
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
        page.set_viewport_size({"width": 390, "height": 900})
        boxes = [box_of(earlier), box_of(later)]
        assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]


def test_the_operations_around_a_finding_name_those_that_broke_it(
    browser: Browser, racing: Report, tmp_path: Path
) -> None:
    with opened(browser, racing, tmp_path) as page:
        rows = page.locator("#finding-1 .operations tbody tr")
        expect(rows).to_have_count(5)
        expect(page.locator("#finding-1 tr.gap")).to_have_text("1 not shown")
        expect(page.locator("#finding-1 tr.offending")).to_contain_text("uses 16 bytes of block 3 after the free")
        expect(page.locator("#finding-1 tr.concerned .role")).to_have_text(["allocated by", "freed by", "used by"])


def test_a_moment_is_read_out_by_mouse_and_keyboard(browser: Browser, racing: Report, tmp_path: Path) -> None:
    with opened(browser, racing, tmp_path) as page:
        readout, canvas = page.locator("[data-readout]"), page.locator(".canvas")
        expect(page.locator(".series .then").first).to_be_hidden()
        canvas.focus()
        page.keyboard.press("Home")
        expect(readout).to_have_text("After call 1: 3 MiB in all.")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(readout).to_have_text("After call 3: 8 MiB in all.")
        assert page.locator("td.then").all_text_contents() == ["3 MiB", "0 bytes", "5 MiB"]
        box = box_of(canvas)
        page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 50)
        expect(readout).to_have_text("After call 8: 8 MiB in all.")


def test_the_memory_plot_has_an_area_for_each_series(browser: Browser, racing: Report, tmp_path: Path) -> None:
    with opened(browser, racing, tmp_path) as page:
        areas = page.locator(".canvas svg .area")
        expect(areas).to_have_count(3)
        assert len({area.evaluate("area => getComputedStyle(area).fill") for area in areas.all()}) == 3
        assert all(area.evaluate("area => area.getBBox().width > 0") for area in areas.all())
        names = page.locator(".series th[scope=row]").all_text_contents()
        assert names == ["Pinned host memory", "Device memory of device 0, stream 2", "Device memory of device 0"]
        expect(page.locator(".canvas .refusal")).to_have_attribute("title", "refused: cudaMalloc of 64 bytes (call 6)")
        expect(page.locator(".canvas .mark")).to_have_attribute("title", "mark step (call 4)")


def test_a_pin_leads_to_its_finding(browser: Browser, racing: Report, tmp_path: Path) -> None:
    with opened(browser, racing, tmp_path) as page:
        pins = page.locator("a.pin")
        expect(pins).to_have_count(2)
        press(pins.nth(0))
        assert page.evaluate("location.hash") == "#finding-2"  # call 6 comes before 7
        covers = page.evaluate(
            "() => { const box = document.querySelector('#finding-2 h3').getBoundingClientRect();"
            " return document.elementFromPoint(box.left + 5, box.top + 5).closest('h3')?.id }"
        )
        assert covers == "finding-2-title"


def test_the_flame_graph_is_walked_through_by_keyboard(browser: Browser, racing: Report, tmp_path: Path) -> None:
    with opened(browser, racing, tmp_path) as page:
        cells = page.locator(".flame .cell")
        expect(cells).to_have_count(7)
        focused = "document.activeElement.getAttribute('aria-label').split(/\\s/)[0]"
        page.locator(".cell[tabindex='0']").focus()
        walked = []
        for key in ("ArrowDown", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowDown", "ArrowDown"):
            page.keyboard.press(key)
            walked.append(page.evaluate(focused))
        assert walked == ["lost", "held", "cudaHostAlloc:", "held", "lost", "<module>", "load"]
        expect(page.locator("[data-said]")).to_contain_text("load train.py:4")
        full = box_of(page.locator(".flame > svg"))["width"]
        page.keyboard.press("Enter")
        assert abs(box_of(page.locator(".cell:focus"))["width"] - full) < 5
        assert visible(page, ".flame .cell") == 5
        expect(page.get_by_role("button", name="Show all")).to_be_visible()
        page.keyboard.press("Escape")
        assert visible(page, ".flame .cell") == 7
        assert page.evaluate(focused) == "all"


def test_what_was_held_is_a_table_as_well(browser: Browser, racing: Report, tmp_path: Path) -> None:
    with opened(browser, racing, tmp_path, java_script_enabled=False) as page:
        rows = page.locator("section[aria-labelledby=held] .holders tbody tr")
        assert [row.split("\n")[0].split("\t")[:3] for row in rows.all_inner_texts()] == [
            ["lost", "device memory", "4,194,304 bytes (4 MiB)"],
            ["held", "pinned memory", "3,145,728 bytes (3 MiB)"],
            ["held", "2 \N{MULTIPLICATION SIGN} stream", ""],
        ]
        assert visible(page, ".flame .cell") == 7
        assert visible(page, "#finding-2 .site") == 2
        assert visible(page, "button") == 0


def test_the_command_is_copied(browser: Browser, racing: Report, tmp_path: Path) -> None:
    with opened(browser, racing, tmp_path, permissions=["clipboard-read", "clipboard-write"]) as page:
        press(page.locator("button.copy"))
        expect(page.locator("button.copy")).not_to_have_text("Copy")
        assert page.evaluate("navigator.clipboard.readText()") == "quiesce exec -- python train.py"


def test_an_inconclusive_run_says_why_first(browser: Browser, program: Result, tmp_path: Path) -> None:
    reason = "the program asked for a device and was refused"
    result = replace(program, verdict=Verdict.INCONCLUSIVE, reason=reason, must_conclude=True, findings=())
    with opened(browser, Report(0, (result,)), tmp_path) as page:
        expect(page.locator("h1")).to_have_text("Inconclusive")
        expect(page.locator(".headline .why")).to_have_text(reason)
        assert box_of(page.locator(".headline .why"))["y"] < 300
        expect(page.locator(".top .badge")).to_have_text("inconclusive")


def test_who_held_the_memory_is_shown(browser: Browser, program: Result, tmp_path: Path) -> None:
    assert program.program is not None
    result = replace(program, program=replace(program.program, out_of_memory=REFUSED))
    with opened(browser, Report(0, (result,)), tmp_path, viewport={"width": 390, "height": 900}) as page:
        page.locator("nav").get_by_role("link", name="Out of memory").press("Enter")
        expect(page.locator("#out-of-memory")).to_be_in_viewport()
        parts = page.locator(".capacity span")
        expect(parts).to_have_count(4)
        widths = [box_of(part)["width"] for part in parts.all()]
        assert widths == sorted(widths, reverse=True)
        expect(page.locator(".exhaustion + .scroll .holders tbody tr")).to_have_count(1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_processes_of_a_program_are_told_apart(browser: Browser, program: Result, tmp_path: Path) -> None:
    passed = replace(program, case="train (process 1)", verdict=Verdict.PASSED, findings=())
    results = tuple(replace(passed, case=f"train (process {number})") for number in range(1, 6))
    failed = replace(program, case="train (process 6)")
    with opened(browser, Report(0, (*results, failed)), tmp_path) as page:
        processes = page.locator("details.process")
        expect(processes).to_have_count(6)
        assert [each.get_attribute("open") is not None for each in processes.all()] == [False] * 5 + [True]
        assert page.evaluate("new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size") == page.evaluate(
            "document.querySelectorAll('[id]').length"
        )
        page.evaluate("location.hash = '#p2-held'")
        expect(processes.nth(1).locator("#p2-held")).to_be_visible()


def hostile(program: Result, text: str) -> Result:
    """A result that says one text wherever a program can say anything."""
    assert program.program is not None
    run = program.program
    site = CallSite(text, text, 3, (Frame(text, text, 1), Frame(text, text, 1, folded=text), Frame(text, module=text)))
    series = MemorySeries(text, 0, None, (0, 1, 2, 3, 4), 4, 1)
    return replace(
        program,
        case=text,
        reason=text,
        reproduce=text,
        findings=(Finding(text, text, text, 3, request=text, evidence=text, call_sites=(site, site)),),
        program=replace(
            run,
            conditions=replace(run.conditions, command=text, flavour=text, schedule=text, failures=(text,)),
            notes=(text,),
            memory=replace(run.memory, series=(series,), refused=(Event(3, text),), marks=(Event(4, text),)),
            surroundings=(Surroundings(0, (ObservedCall(3, 1, text, text, text),)),),
            holdings=replace(run.holdings, kept=(Holding(text, text, 0, 1, 64, site),)),
        ),
    )


@pytest.mark.parametrize("number", range(len(ATTACKS)))
def test_hostile_text_is_inert(number: int, browser: Browser, program: Result, tmp_path: Path) -> None:
    report = Report(0, (hostile(program, ATTACKS[number]),), {ATTACKS[number]: ATTACKS[number]})
    with opened(browser, report, tmp_path, viewport={"width": 390, "height": 900}) as page:
        page.locator(".cell").first.hover()
        page.locator(".canvas").hover()
        assert page.evaluate("window.hit") is None
        assert page.locator("main :is(img, iframe, script:not([type]), style, svg[onload])").count() == 0
        assert page.locator("a:not([href^='#'])").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_one_finding_makes_a_small_page(program: Result) -> None:
    text = render_html(Report(0, (program,)))
    assert len(text.encode()) < 100_000


def test_calls_that_failed_are_shown(browser: Browser, program: Result, tmp_path: Path) -> None:
    with opened(browser, Report(0, (program,)), tmp_path, viewport={"width": 390, "height": 900}) as page:
        page.locator("nav").get_by_role("link", name="Failed calls").press("Enter")
        expect(page.locator("#failed")).to_be_in_viewport()
        expect(page.locator("#failed + .scroll tbody tr")).to_have_count(2)
        expect(page.locator("#failed + .scroll tbody")).to_contain_text("the program did not look at the error")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
