"""Makes the picture of the report in README: runs a tutorial's program, and photographs the page of that run.

    python docs/pictures/make.py

It needs Linux, a C compiler, the extra ``report``, Playwright and Chromium. Next to the picture it writes
``report.txt``, the part of the page that the picture shows. A test runs the program again and compares that text,
which needs no browser.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

PICTURES: Final = Path(__file__).resolve().parent
TUTORIAL: Final = PICTURES.parent / "tutorials" / "find_a_race_in_a_gpu_program.md"
PICTURE: Final = PICTURES / "report.png"
RECORD: Final = PICTURES / "report.txt"
WIDTH: Final = 900
"""In pixels: GitHub shows a picture as wide as its text, about 850."""

_FILE: Final = re.compile(r"Save this as `([\w.]+)`:\n\n```python\n(.*?)```", re.DOTALL)
_SHOWN: Final = re.compile(r'<main.*?(?=<section aria-labelledby="held">)', re.DOTALL)
_STYLE: Final = re.compile(r"<style.*?</style>", re.DOTALL)
_VARIES: Final = re.compile(r"0x[0-9a-f]+|\d+(?= frames? in )")
"""Addresses, and how many frames in a library are folded, which depends on the release of Python."""


def make_page(folder: Path) -> Path:
    """Run the first program of the tutorial in a folder, and return the page of that run."""
    for name, text in reversed(_FILE.findall(TUTORIAL.read_text(encoding="utf-8"))):
        (folder / name).write_text(text, encoding="utf-8")  # the first of each name is written last
    words = [sys.executable, "-m", "quiesce", "exec", "--report", "out", "--", "python", "frames.py"]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = {**os.environ, "PATH": path}  # the page shows the command, and 'python' has to be this one
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 1:
        sys.exit(f"quiesce exec ended with {done.returncode} where 1 was expected:\n{done.stdout}{done.stderr}")
    return folder / "out" / "report.html"


def described(page: Path, folder: Path) -> str:
    """Return what the picture shows of a page, as text: its elements and words without what varies, and its style."""
    text = page.read_text(encoding="utf-8").replace(f"{folder}/", "")
    shown = _SHOWN.search(text)
    assert shown, f"{page} has no part above the heading 'Held at exit'"
    lines = (_VARIES.sub("~", line.strip()) for line in shown[0].splitlines())
    style = hashlib.sha256("".join(_STYLE.findall(text)).encode()).hexdigest()
    return "".join(f"{line}\n" for line in (f"style {style}", *filter(None, lines)))


def with_picture(description: str) -> str:
    """Return the record of a description and of the picture that was taken with it."""
    return f"picture {hashlib.sha256(PICTURE.read_bytes()).hexdigest()}\n{description}"


def photograph(page: Path) -> None:
    """Take the picture: the page down to the call stacks of its finding."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
        view.goto(page.as_uri())
        box = view.locator("section.site").last.bounding_box()
        assert box
        height = box["y"] + box["height"] + 12
        view.screenshot(path=PICTURE, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        browser.close()


def main() -> None:
    """Make the picture and its record."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        page = make_page(folder)
        photograph(page)
        RECORD.write_text(with_picture(described(page, folder)), encoding="utf-8")
    print(f"{PICTURE} has {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
