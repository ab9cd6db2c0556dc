"""The README as an index shows it: links and pictures lead to the repository, at the tag of this version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK: Final = re.compile(r"(?P<picture>!?)\[(?P<text>(?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*)\]\((?P<target>[^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Hatchling asks this hook for the fields that pyproject.toml calls dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Give the README of the folder that is built."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        base = metadata["urls"]["Source"]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, base, f"v{metadata['version']}")}


def absolute(text: str, repository: str, tag: str) -> str:
    """Return Markdown whose relative links lead to a file of the repository."""

    def lead(match: re.Match[str]) -> str:
        inner = absolute(match["text"], repository, tag)  # a picture may be a link
        target = match["target"]
        if "://" not in target and not target.startswith(("#", "mailto:")):
            target = f"{repository}/{'raw' if match['picture'] else 'blob'}/{tag}/{target}"
        return f"{match['picture']}[{inner}]({target})"

    return _LINK.sub(lead, text)
