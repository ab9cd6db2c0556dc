"""Tells GitHub Actions what a command found: an annotation of its line for each finding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quiesce.cli.console import Console
from quiesce.results import Result


def tell_github(results: Sequence[Result], console: Console) -> None:
    """Write the annotations, if this is a step of GitHub Actions."""
    from quiesce.reporting.github import checkout, finding_lines

    here = Path.cwd()
    if workspace := checkout(here):
        console.write("".join(f"{line}\n" for line in finding_lines(results, [here], workspace)))
