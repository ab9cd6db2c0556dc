"""The first lines of a run: what is about to run, and where; backends that are left out, and what to install."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.amounts import counted
from quiesce.reporting.terminal import align
from quiesce.reporting.text import clean_line

VERSION_CHARACTERS_MAX: Final = 60
_DETAIL: Final = re.compile(r" \([^()]*\)")
"""The words of an error, which 'quiesce doctor' shows."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A backend that takes part, and how many of the cases it can run."""

    name: str
    version: str
    cases: int


def opening_lines(cases: int, of_bugs: int, backends: Iterable[Chosen], seed: int) -> list[str]:
    """Return how many cases there are, and for each backend how many of them it can run."""
    controls = cases - of_bugs
    kinds = "" if controls else " of historic bugs"
    if of_bugs and controls:
        kinds = f" ({of_bugs} of historic bugs and {counted(controls, 'control')})"
    rows = [
        [f"  {clean_line(each.name)}", f"{each.cases} of {cases}", short_version(each.version)] for each in backends
    ]
    said = f"{counted(cases, 'case')}{kinds}"
    return [
        f"{said} on {counted(len(rows), 'backend')}, seed {seed}",
        *(align(rows, right=frozenset({1})) if rows else []),
    ]


def short_version(text: str) -> str:
    """Return what a version says before its details; nothing for a bare number, which says nothing to a reader."""
    shown = clean_line(text).partition(",")[0].partition("  ")[0]
    if shown.isdecimal():
        return ""
    return shown if len(shown) <= VERSION_CHARACTERS_MAX else f"{shown[:VERSION_CHARACTERS_MAX]}…"


def left_out_lines(skipped: Mapping[str, str]) -> list[str]:
    """Return a line for each reason why backends are left out, with all of the backends that it holds for."""
    names_by_reason: dict[str, list[str]] = {}
    for name, why in sorted(skipped.items()):
        names_by_reason.setdefault(_DETAIL.sub("", clean_line(why)), []).append(clean_line(name))
    return [f"left out: {', '.join(names)}: {why}" for why, names in names_by_reason.items()]
