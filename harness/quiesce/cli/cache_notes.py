"""Fills the cache before a run, says why that takes long, and where the cache is if not in the usual place."""

from __future__ import annotations

from quiesce.cli.console import Console
from quiesce.simulator.build import build_all
from quiesce.simulator.cache import describe_replacement


def prepare_cache(console: Console) -> None:
    """Compile what a program needs before it begins, and say what a user has to know; nothing where all is as usual.

    Raises :class:`quiesce.errors.BackendUnavailable` where it can't be compiled.
    """
    replacement = describe_replacement()
    if replacement:
        console.complain(replacement)
    build_all(console.complain)
