"""The ``run`` object of a report: all that may differ between two equal runs, and what it says about completeness."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import UTC, datetime

from quiesce.backends.registry import Usable
from quiesce.cli.selection import Choice, check_described
from quiesce.cli.version import version
from quiesce.model.errors import CaseError
from quiesce.model.results import Report
from quiesce.reporting.result_lists import ENDED, NAMED, PLANNED, SKIPPED, UNREADABLE


def describe_run(planned: int | None, backends: Choice, errors: Iterable[CaseError]) -> dict[str, str]:
    """Return what is known before the first case runs: time, machine, versions, what was left out and why.

    ``planned`` is how many results a complete run has, or None where nobody knows yet.
    """
    described = [each for each in backends.usable if isinstance(check_described(each), Usable)]
    versions = {f"version of {each.name}": each.description.version for each in described}
    skipped = {f"{SKIPPED}{each.name}": each.explanation for each in backends.skipped}
    named = {f"{NAMED}{name}": "--backend" for name in backends.named}
    unreadable = {f"{UNREADABLE}{error.path}": str(error) for error in errors}
    return {
        **({} if planned is None else {PLANNED: str(planned)}),
        **describe_machine(),
        **versions,
        **named,
        **skipped,
        **unreadable,
    }


def describe_machine() -> dict[str, str]:
    """Return when and on what a command runs."""
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": _system(),
        "version of quiesce": version(),
    }


def _system() -> str:
    """Return the operating system and its release, with the distribution where it says which it is."""
    kernel = f"{platform.system()} {platform.release()}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except (OSError, KeyError):
        return kernel


def is_finished(report: Report) -> bool:
    """Whether the report holds every result that the run set out for; where that is not known, whether it ended."""
    if PLANNED in report.run:
        return report.run[PLANNED] == str(len(report.results))
    return report.run.get(ENDED) == "completed"


def has_unreadable(report: Report) -> bool:
    """Whether the run left case files out because they could not be read."""
    return any(key.startswith(UNREADABLE) for key in report.run)
