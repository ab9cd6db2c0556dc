"""How Sphinx makes the site from these pages, which also read well as plain Markdown on GitHub."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

PAGES: Final = Path(__file__).resolve().parent
ROOT: Final = PAGES.parent

project = "quiesce"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
project_copyright = "the authors of quiesce"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 6  # as on GitHub, any heading can be linked
html_theme = "furo"
html_title = f"quiesce {version}"
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

MENU: Final = {
    "Start": ("*",),
    "Tutorials": ("tutorials/*",),
    "How-to guides": ("how-to/*",),
    "Reference": ("reference/*",),
    "Explanation": ("explanation/*",),
    "Found": ("found/README", "found/*"),
    "Contributing": ("contributing/*",),
}
"""The menu's captions, and the pages below each."""

_LINK = re.compile(r"(?<=\]\()(?P<name>[^)#\s]+)(?P<anchor>#[^)\s]+)?(?=\))")
_CODE = re.compile(r"^(```[\s\S]*?^```|(?: {4}.*\n)+)", re.MULTILINE)


class Site(Protocol):
    """The part of Sphinx's application that is used here."""

    def connect(self, event: str, callback: Callable[[object, str, list[str]], None]) -> int:
        """Have a function called at an event."""


def repository() -> str:
    """Return where files outside these pages are: on a hosted runner the repository, else the checkout."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}/blob/main" if server and name else ROOT.as_uri()


def link_outside(text: str, page: Path) -> str:
    """Let a page's relative links to files outside these pages lead into the repository."""

    def resolved(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link["name"]))
        if "://" in link["name"] or target.is_relative_to(PAGES) or not target.exists():
            return link[0]
        return f"{repository()}/{target.relative_to(ROOT).as_posix()}{link['anchor'] or ''}"

    prose_and_code = _CODE.split(text)
    prose_and_code[::2] = [_LINK.sub(resolved, prose) for prose in prose_and_code[::2]]
    return "".join(prose_and_code)


def menu() -> str:
    """Return the directives that make the menu; they are not written into index.md, where GitHub would show them."""
    parts = []
    for caption, patterns in MENU.items():
        listed = "\n".join(patterns)
        parts.append(f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{listed}\n```\n")
    return "".join(parts)


def read(_site: object, page: str, source: list[str]) -> None:
    """Change a page's text before it is parsed."""
    source[0] = link_outside(source[0], PAGES / f"{page}.md")
    if page == "index":
        source[0] += menu()


def setup(site: Site) -> dict[str, bool]:
    """Say to Sphinx what to call, and that pages can be read in parallel."""
    site.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
