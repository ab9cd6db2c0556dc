"""Several reports as one: those of the shards of a run, or of runs on several machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.reporting.run_keys import ENDED, PLANNED
from quiesce.results import Report

COUNT: Final = "merged runs"
"""How many runs a report has the results of."""


def merged_report(reports: Sequence[Report]) -> Report:
    """Return one report with the results of all, in their order.

    Of what is known of the runs it keeps what all of them say alike. Planned results are added up.
    """
    first, *others = reports
    run = {key: value for key, value in first.run.items() if all(other.run.get(key) == value for other in others)}
    run.pop(ENDED, None)
    planned = [report.run.get(PLANNED, "") for report in reports]
    if all(each.isdigit() for each in planned):
        run[PLANNED] = str(sum(int(each) for each in planned))
    else:
        run.pop(PLANNED, None)
    run[COUNT] = str(len(reports))
    results = tuple(result for report in reports for result in report.results)
    return Report(seed=first.seed, results=results, run=run)
