"""Says before a run why it takes long to begin, and where its libraries are kept if not in the usual place."""

from __future__ import annotations

from quiesce.cli.console import Console
from quiesce.simulator.build import is_built
from quiesce.simulator.cache import describe_replacement


def tell_of_cache(console: Console) -> None:
    """Say what a user has to know about the cache before a program begins; nothing where all is as usual."""
    replacement = describe_replacement()
    if replacement:
        console.complain(replacement)
    if not is_built():
        console.complain("compiling the simulated runtime; this is done once and takes about 20 seconds")
