"""How soon generated sequences find each fault of the museum, and how short what they find becomes.

``python benchmarks/detection.py`` prints a table in Markdown: the operations until something was found, the invariant,
and the length of the shrunk sequence beside that of the shortest case in the corpus that the same fault fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.backends.reference import faulty
from quiesce.cases.case import Case
from quiesce.cases.catalogue import find_cases, load
from quiesce.cases.expansion import PerformStep, expand
from quiesce.generation.campaign import CampaignResult, run_campaign
from quiesce.reference.museum import FAULTS

OPERATIONS_MAX: Final = 200_000


@dataclass(frozen=True, slots=True)
class Detection:
    """What a campaign made of one fault; lengths are in operations."""

    fault: str
    mode: str
    operations: int
    invariant: str
    length: int | None
    shortest: int | None

    def row(self) -> str:
        """Return a line of the table."""
        ratio = f"{self.length / self.shortest:.1f}" if self.length and self.shortest else ""
        found = self.invariant or "not found"
        cells = (self.fault, self.mode, f"{self.operations:,}", found, self.length or "", self.shortest or "", ratio)
        return "| " + " | ".join(str(cell) for cell in cells) + " |"


def length_of(case: Case) -> int:
    """Return how many operations a case performs."""
    return sum(1 for step in expand(case) if isinstance(step, PerformStep))


def shortest_lengths(cases: Iterable[Case]) -> dict[str, int]:
    """Return for each fault the length of its shortest case."""
    shortest: dict[str, int] = {}
    for case in cases:
        if case.fault:
            length = length_of(case)
            shortest[case.fault] = min(length, shortest.get(case.fault, length))
    return shortest


def detect(fault: str, seed: int, shortest: int | None) -> Detection:
    """Run valid sequences against one fault, then hostile ones where those find nothing."""
    result: CampaignResult | None = None
    for hostile in (False, True):
        result = run_campaign(faulty(fault), seed=seed, operations=OPERATIONS_MAX, hostile=hostile)
        if result.discovery is not None:
            break
    assert result is not None
    found = result.discovery
    return Detection(
        fault=fault,
        mode="hostile" if result.hostile else "valid",
        operations=result.operations,
        invariant="" if found is None else found.shrunk.invariant,
        length=None if found is None else length_of(found.case),
        shortest=shortest,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of the campaigns (default: 1)")
    parser.add_argument("faults", nargs="*", help="faults of the museum (default: all)")
    arguments = parser.parse_args()
    corpus = Path(__file__).resolve().parent.parent / "cases"
    shortest = shortest_lengths(load(find_cases([corpus])).cases)
    print("| fault | mode | operations until found | invariant | shrunk to | shortest case | ratio |")
    print("|---|---|--:|---|--:|--:|--:|")
    for fault in arguments.faults or sorted(FAULTS):
        print(detect(fault, arguments.seed, shortest.get(fault)).row(), flush=True)


if __name__ == "__main__":
    main()
