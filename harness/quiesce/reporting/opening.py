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


def left_out_lines(unavailable: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return a line for backends that are not installed, for others that cannot work here, and the like.

    ``unavailable`` says of each what is the matter in short, and which command says more or helps.
    """
    names_by_matter: dict[tuple[str, str], list[str]] = {}
    for name, matter in sorted(unavailable.items()):
        names_by_matter.setdefault(matter, []).append(clean_line(name))
    return [f"{what}: {', '.join(names)} ({clean_line(advice)})" for (what, advice), names in names_by_matter.items()]
