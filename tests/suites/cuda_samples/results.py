"""What came of samples, kept in a file of one line each, so that a run that ends early goes on where it stopped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.suites.cuda_samples.running import Came, Outcome

_CELL_MAX: Final = 300


def read_results(file: Path) -> dict[str, Came]:
    """Return what is kept, by sample; the last line of a sample counts, and one that was cut off does not."""
    kept = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        came = Came(values["sample"], Outcome(values["outcome"]), tuple(values["why"]), values["seconds"])
        kept[came.sample] = came
    return kept


def keep(file: Path, came: Came) -> None:
    """Add a line, which is on the disk when this returns."""
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(asdict(came)) + "\n")


def table(names: Sequence[str], results: Mapping[str, Came]) -> str:
    """Return one line for each sample, and the counts, in Markdown."""
    came = [results[name] for name in names if name in results]
    return "\n".join(["| sample | result | why |", "|---|---|---|", *map(_row, came), "", *_counts(came), ""])


def _row(came: Came) -> str:
    why = "; ".join(came.why).replace("|", "\\|")
    return f"| {came.sample} | {came.outcome} | {why if len(why) <= _CELL_MAX else why[:_CELL_MAX] + ' …'} |"


def _counts(came: Iterable[Came]) -> Iterator[str]:
    counts = Counter(each.outcome for each in came)
    yield f"{counts.total():,} samples: " + ", ".join(f"{counts[each]:,} {each}" for each in Outcome if counts[each])
