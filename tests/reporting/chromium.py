"""The page in Chromium, for the tests that look at it as a reader does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("playwright", reason="Playwright, which drives the browser, is not installed")

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from quiesce.model.findings import Finding
from quiesce.model.results import Report, Result, Sample, Verdict
from quiesce.reporting.html import write_html

__all__ = ["Browser", "Locator", "Page", "expect"]


def find_chromium() -> str | None:
    """A Chromium that starts; a distribution may have a program of that name that only says where to get one."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


CHROMIUM = find_chromium()
NEEDS_CHROMIUM = pytest.mark.skipif(not CHROMIUM, reason="no Chromium that starts is on PATH")
TIMEOUT_MILLISECONDS = 120_000  # a busy machine is slow; nothing is concluded from time
expect.set_options(timeout=TIMEOUT_MILLISECONDS)

ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",  # a container's is small
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",  # root may not use the sandbox, and the page is ours
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


@contextmanager
def launched() -> Iterator[Browser]:
    """A Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, report: Report, directory: Path, **options: Any) -> Iterator[Page]:
    """The report in a new profile; on leaving, the page must have been silent and have asked for itself only."""
    path = directory / "report.html"
    write_html(report, path)
    context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **options})
    said: list[str] = []
    asked: list[str] = []
    context.set_default_timeout(TIMEOUT_MILLISECONDS)
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]  # the empty icon is in the page


def scroll_to(figure: Locator) -> None:
    """Look at a figure until it answers the mouse; its picture can be seen before that."""
    figure.scroll_into_view_if_needed()
    expect(figure).to_have_attribute("data-awake", "")


def press(control: Locator) -> None:
    """Use a control by the keyboard; a click that the page moves under, while parts of it are drawn, is lost."""
    control.press("Enter")


def point_at(figure: Locator, words: str) -> None:
    """Move the mouse over a plot until it says the words."""
    _hover(figure.locator(".canvas"), 60, figure.locator(".legend"), words)


def point_at_operation(card: Locator, index: int) -> None:
    """Move the mouse over a line of a finding's operations until the caption says which it is."""
    caption = card.locator("figure[data-plot=timeline] figcaption")
    _hover(card.locator(f"tr[data-index='{index}']"), 5, caption, f"operation {index} ")


def _hover(target: Locator, height_pixels: int, answer: Locator, words: str) -> None:
    """Move the mouse over a target until the answer has the words: while parts are drawn, a movement may go unheard."""
    for column in range(100, 200, 10):
        target.hover(position={"x": column, "y": height_pixels})
        try:
            expect(answer).to_contain_text(words, timeout=10_000)
        except AssertionError:
            continue
        return
    raise AssertionError(f"no movement of the mouse makes the page say {words!r}")


def failed(number: int, backend: str = "host") -> Result:
    """A failed result with a timeline."""
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
    """How many elements can be seen."""
    count: int = page.locator(selector).filter(visible=True).count()
    return count
