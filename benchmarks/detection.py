"""How soon generated sequences find each fault of the museum, and how short what they find becomes.

``python benchmarks/detection.py`` prints a table in Markdown. Every fault is tried with several seeds, valid sequences
and hostile ones in turn, until something is found; every operation performed on the way counts. What was found is
shrunk, and the longest result is set against the shortest known that breaks the same rule: a case of the corpus
or the shortest that another seed led to.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.cases.expansion import PerformStep, expand
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.allocators.reference.museum import FAULTS
from quiesce.backends.reference import faulty

SEEDS: Final = (1, 2, 3)
BUDGETS: Final = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Found:
    """What one seed led to; the length is in operations."""

    mode: str
    operations: int
    rule: str
    length: int


def length_of(case: Case) -> int:
    """Return how many operations a case performs."""
    return sum(1 for step in expand(case) if isinstance(step, PerformStep))


def corpus_lengths(cases: Iterable[Case]) -> dict[tuple[str, str], int]:
    """Return for each fault and the rule that it breaks the length of the shortest case."""
    shortest: dict[tuple[str, str], int] = {}
    for case in cases:
        if case.fault:
            key = (case.fault, case.finds)
            shortest[key] = min(length_of(case), shortest.get(key, 1 << 30))
    return shortest


def detect(fault: str, seed: int, operations_max: int) -> Found | int:
    """Run ever longer campaigns against one fault; return what was found, or how many operations found nothing."""
    performed = 0
    for budget in BUDGETS:
        for hostile in (False, True):
            result = run_campaign(faulty(fault), seed=seed, operations=min(budget, operations_max), hostile=hostile)
            performed += result.operations
            if result.discovery is not None:
                rule = result.discovery.shrunk.rule
                mode = "hostile" if hostile else "valid"
                return Found(mode, performed, rule, length_of(result.discovery.case))
        if budget >= operations_max:
            break
    return performed


def row(fault: str, outcomes: Sequence[Found | int], corpus: dict[tuple[str, str], int]) -> str:
    """Return a line of the table."""
    found = [outcome for outcome in outcomes if isinstance(outcome, Found)]
    missed = [outcome for outcome in outcomes if isinstance(outcome, int)]
    if not found:
        return f"| {fault} | | more than {min(missed):,} | not found | | | |"
    cells = []
    for rule in dict.fromkeys(each.rule for each in found):
        lengths = [each.length for each in found if each.rule == rule]
        shortest = min(*lengths, corpus.get((fault, rule), 1 << 30), 1 << 30)
        cells.append((rule, max(lengths), shortest, f"{max(lengths) / shortest:.1f}"))
    modes = " ".join(dict.fromkeys(each.mode for each in found))
    counts = sorted(each.operations for each in found)
    spread = f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"
    spread += f", {len(missed)} of {len(outcomes)} seeds not within {min(missed):,}" if missed else ""
    columns = (
        fault,
        modes,
        spread,
        *("<br>".join(str(cell) for cell in column) for column in zip(*cells, strict=True)),
    )
    return "| " + " | ".join(columns) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="seeds of the campaigns (default: 1 2 3)")
    parser.add_argument("--operations", type=int, default=BUDGETS[-1], help="give up after so many in each mode")
    parser.add_argument("faults", nargs="*", help="faults of the museum (default: all)")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parent.parent / "cases"
    corpus = corpus_lengths(load(find_cases([root])).cases)
    print("| fault | mode | operations until found | rule | shrunk to | shortest known | ratio |")
    print("|---|---|--:|---|--:|--:|--:|")
    for fault in arguments.faults or sorted(FAULTS):
        outcomes = [detect(fault, seed, arguments.operations) for seed in arguments.seeds]
        print(row(fault, outcomes, corpus), flush=True)


if __name__ == "__main__":
    main()
