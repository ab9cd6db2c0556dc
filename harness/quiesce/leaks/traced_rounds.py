"""Rounds under traces, which come last: they say whose memory has grown, and which line asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.leaks.budget import TRACES, Budget
from quiesce.leaks.endurance import LARGE_ROUNDS
from quiesce.leaks.letting_go import LettingGo
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import PYTHON
from quiesce.leaks.rounds import Rounds
from quiesce.leaks.settling import BoundedCaches, collect_garbage
from quiesce.leaks.tracing import Site, Tracing

TRACED_ROUNDS: Final = 24
TRACED_LEAST: Final = 4  # where the time is used up


class TracedRounds:
    """Runs those of one check."""

    def __init__(self, tracing: Tracing, rounds: Rounds, letting_go: LettingGo, plan: Plan, budget: Budget) -> None:
        self._tracing = tracing
        self._rounds = rounds
        self._letting_go = letting_go
        self._plan = plan
        self._budget = budget
        self.untraced = 0
        """How many rounds there were before them."""

    def run(self, caches: BoundedCaches, *, is_large: bool) -> bool:
        """Run them, few if what grows is large; return False where the tested code ends the traces."""
        self._tracing.start()
        self.untraced = self._rounds.count
        for number in range(LARGE_ROUNDS if is_large else max(TRACED_ROUNDS, self._plan.rounds)):
            if number >= TRACED_ROUNDS and self._tracing.leaking_sites():
                break  # a buffer that grows in place takes more memory at every eighth of its size only
            if self._budget.is_used_up() and number >= TRACED_LEAST:
                break
            if number >= LARGE_ROUNDS and self._budget.is_used_up(TRACES):
                break
            caches.empty_the_librarys()
            self._rounds.repeat()
            collect_garbage()
            if not self._tracing.sample():
                return False
        return True

    def leaking_sites(self, caches: BoundedCaches) -> Sequence[Site]:
        """Return the sites that keep ever more, even now."""
        if not self._tracing.leaking_sites():
            return ()
        self._letting_go.let_go(caches)
        self._tracing.replace_last()
        sites = self._tracing.leaking_sites()
        over_limit = sum(site.bytes_per_round for site in sites) > self._plan.limit_bytes
        return sites if over_limit and self._plan.looks_at(PYTHON) else ()
