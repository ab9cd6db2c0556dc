"""The first lines of a run: what is about to run, and where; backends that are not installed, or do not work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.amounts import counted
from quiesce.reporting.terminal import align
from quiesce.reporting.text import clean_line

VERSION_CHARACTERS_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Chosen:
    """A backend that takes part, and how many of the cases it can run."""

    name: str
    version: str
    cases: int


def opening_lines(cases: int, backends: Iterable[Chosen], seed: int) -> list[str]:
    """Return how many cases there are, and for each backend how many of them it can run."""
    rows = [
        [f"  {clean_line(each.name)}", f"{each.cases} of {cases}", short_version(each.version)] for each in backends
    ]
    return [
        f"{counted(cases, 'case')} on {counted(len(rows), 'backend')}, seed {seed}",
        *(align(rows, right=frozenset({1})) if rows else []),
    ]


def short_version(text: str) -> str:
    """Return what a version says before its details; nothing for a bare number, which says nothing to a reader."""
    shown = clean_line(text).partition(",")[0].partition("  ")[0]
    if shown.isdecimal():
        return ""
    return shown if len(shown) <= VERSION_CHARACTERS_MAX else f"{shown[:VERSION_CHARACTERS_MAX]}…"


def left_out_lines(unavailable: Mapping[str, bool]) -> list[str]:
    """Return a line for backends that are not installed, and one for others that cannot work here.

    ``unavailable`` says of each backend whether it is installed. ``quiesce doctor`` says why, and what to do.
    """
    missing = sorted(clean_line(name) for name, is_installed in unavailable.items() if not is_installed)
    broken = sorted(clean_line(name) for name, is_installed in unavailable.items() if is_installed)
    said = (("not installed", missing), ("cannot work here", broken))
    return [f"{what}: {', '.join(names)} (see quiesce doctor)" for what, names in said if names]
