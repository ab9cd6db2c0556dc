"""Colours for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Palette:
    """The escape sequences around text, all empty where colour is off (ECMA-48, Select Graphic Rendition)."""

    good: str = ""
    bad: str = ""
    strong: str = ""
    end: str = ""


PLAIN: Final = Palette()
COLOURED: Final = Palette(good="\x1b[32m", bad="\x1b[31m", strong="\x1b[1m", end="\x1b[0m")
