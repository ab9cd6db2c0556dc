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

METADATA: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README: Final = "README.md"

project = "quiesce"
version = release = METADATA["version"]
project_copyright = "the authors of quiesce"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 6  # as on GitHub, any heading can be linked
html_theme = "furo"
html_title = f"quiesce {version}"
html_show_sphinx = False
html_copy_source = False  # a page never leads to its Markdown
pygments_style = "friendly"
pygments_dark_style = "monokai"

FIRST_CAPTION: Final = "Start"
"""The menu's caption above the pages that index.md names before its first heading."""
FOUND: Final = "found/README"

_LINK = re.compile(r"(?<=\]\()(?P<name>[^)#\s]+)(?P<anchor>#[^)\s]+)?(?=\))")
_CODE = re.compile(r"^(```[\s\S]*?^```|(?: {4}.*\n)+)", re.MULTILINE)


class Site(Protocol):
    """The part of Sphinx's application that is used here."""

    def connect(self, event: str, callback: Callable[[object, str, list[str]], None]) -> int:
        """Have a function called at an event."""


def repository() -> str:
    """Return the repository's address: on a hosted runner its own, else that of the project."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else METADATA["urls"]["Source"]


def address(target: Path) -> str:
    """Return where a file outside these pages is shown. The page of a folder shows its README."""
    name = target.relative_to(ROOT)
    if name.name == README:
        return f"{repository()}/tree/main/{name.parent.as_posix()}" if name.parent.name else repository()
    return f"{repository()}/blob/main/{name.as_posix()}"


def link_outside(text: str, page: Path) -> str:
    """Let a page's relative links to files outside these pages lead into the repository."""

    def resolved(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link["name"]))
        if "://" in link["name"] or target.is_relative_to(PAGES) or not target.exists():
            return link[0]
        return f"{address(target)}{link['anchor'] or ''}"

    prose_and_code = _CODE.split(text)
    prose_and_code[::2] = [_LINK.sub(resolved, prose) for prose in prose_and_code[::2]]
    return "".join(prose_and_code)


def menu(index: str) -> str:
    """Return the directives that make the menu, in the order of index.md. In that file, GitHub would show them."""
    start, *sections = re.split(r"^## ", index, flags=re.MULTILINE)
    parts = []
    for section in (f"{FIRST_CAPTION}\n{start}", *sections):
        caption, _, text = section.partition("\n")
        names = [name.removesuffix(".md") for name in re.findall(r"\]\(([\w/-]+\.md)\)", text)]
        listed = [entry for name in names for entry in ((name, "found/*") if name == FOUND else (name,))]
        lines = "\n".join(listed)
        parts.append(f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{lines}\n```\n")
    return "".join(parts)


def read(_site: object, page: str, source: list[str]) -> None:
    """Change a page's text before it is parsed."""
    source[0] = link_outside(source[0], PAGES / f"{page}.md")
    if page == "index":
        source[0] += menu(source[0])


def setup(site: Site) -> dict[str, bool]:
    """Say to Sphinx what to call, and that pages can be read in parallel."""
    site.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
