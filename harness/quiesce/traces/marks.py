"""Growth between marks: a program that marks each of its iterations may hold no more at the end of the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce.findings import Finding, Grade
from quiesce.oracle.growth import grows_as_expected, slope
from quiesce.oracle.invariants.closing import GROWTH
from quiesce.simulator.ledger import Record

WARM_UP: Final = 2
"""How many of the first marks are not judged: contexts, workspaces and caches are made then."""
MARKS_MIN: Final = 6
"""With fewer marks of one name nothing is judged."""


class Marks:
    """What was live at each mark, by the mark's name."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Record]] = {}

    def see(self, record: Record) -> None:
        """Enter one mark."""
        self._seen.setdefault(record.function, []).append(record)

    def findings(self) -> Iterator[Finding]:
        """Yield what grew from mark to mark."""
        for name, records in self._seen.items():
            if len(records) < MARKS_MIN:
                continue
            judged = records[WARM_UP:]
            yield from _grown(name, "blocks", [record.address for record in judged])
            yield from _grown(name, "bytes", [record.size_bytes for record in judged])
            yield from _grown(name, "handles", [record.other for record in judged])


def _grown(name: str, what: str, values: list[int]) -> Iterator[Finding]:
    if not grows_as_expected(values, 0, cumulative=False):
        yield Finding(
            GROWTH,
            f"as many {what} at each mark '{name}' as at the one before",
            f"{float(slope(values)):.4g} more per mark, from {values[0]} to {values[-1]} in {len(values)} marks",
            fault_class="LIVE",
            grade=Grade.GROWTH,
        )
