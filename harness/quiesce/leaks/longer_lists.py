"""Which line makes a list longer, or a variable hold more.

What goes into the room that a list has is no allocation, so it has no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quiesce.leaks.line_watch import ROUNDS, Counts, LineWatch
from quiesce.leaks.list_places import Listed
from quiesce.leaks.lists import REFERENCE_BYTES
from quiesce.leaks.owners import Owners
from quiesce.leaks.tracing import Site
from quiesce.leaks.variables import VariableMeter


def longer_lists(owners: Owners, lists: Sequence[Listed], run_round: Callable[[], None]) -> Sequence[Site]:
    """Run a few rounds and return the lines of tested code that make lists longer, the fastest first."""
    changed = LineWatch(owners, Counts(lambda: tuple(map(len, lists)))).watch(run_round)
    return [Site(each.frame, REFERENCE_BYTES * each.change / ROUNDS, 0.0) for each in changed]


def fuller_variables(owners: Owners, variables: VariableMeter, run_round: Callable[[], None]) -> Sequence[Site]:
    """Run a few rounds and return the lines of tested code after which variables hold more, the fastest first."""
    changed = LineWatch(owners, Counts(lambda: (variables.held_bytes(),))).watch(run_round)
    return [Site(each.frame, each.change / ROUNDS, 0.0) for each in changed]
