"""What a run says once it knows its items, and in its report: its cases, backends, leak checks, machine and time."""

from __future__ import annotations

import importlib.metadata
import platform
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from quiesce.leaks import ROUNDS_MIN
from quiesce.model.wording import counted
from quiesce.pytest_plugin.case_items import CaseItem
from quiesce.pytest_plugin.keys import DESCRIPTIONS, NOT_RUN, SELECTION, SETTINGS
from quiesce.pytest_plugin.selection import chosen
from quiesce.reporting import NAMED, SKIPPED, Chosen, clean_line, left_out_lines, opening_lines


def header_lines(config: pytest.Config, items: Sequence[pytest.Item], checked: int) -> list[str]:
    """Return a line for the cases or, where there is none, for the options that were given; and one for leak checks.

    ``checked`` counts the leak checks.
    """
    lines: list[str] = []
    on_backend = [item for item in items if isinstance(item, CaseItem)]
    not_run = config.stash.get(NOT_RUN, [])
    paths = {item.case.path for item in on_backend} | {result.path for result in not_run}
    if paths:
        selection = chosen(config)
        descriptions = config.stash.get(DESCRIPTIONS, {})
        counts = Counter(item.name for item in on_backend)
        backends = []
        for name in selection.backends:
            description = descriptions.get(name)
            backends.append(Chosen(name, "" if description is None else description.version, counts[name]))
        first, *rest = opening_lines(len(paths), backends, config.stash[SETTINGS].seed)
        lines += [f"quiesce: {first}", *rest]
        unavailable = {name: each.in_short for name, each in selection.unavailable.items()}
        lines += [f"  {line}" for line in left_out_lines(unavailable)]
    elif config.stash[SETTINGS].asked:
        lines.append(_of_options(config))
    if checked:
        are = "is" if checked == 1 else "are"
        how = (
            f"it is repeated at least {ROUNDS_MIN} times"
            if checked == 1
            else f"each is repeated at least {ROUNDS_MIN} times"
        )
        lines.append(f"quiesce: {counted(checked, 'test')} {are} checked for leaks: {how}")
    return lines


def _of_options(config: pytest.Config) -> str:
    """Return the seed and the backends that fixtures of ordinary tests get."""
    selection = config.stash.get(SELECTION, None)
    names = "every backend that works here" if selection is None else ", ".join(selection.backends)
    return f"quiesce: seed {config.stash[SETTINGS].seed}, backends: {names}"


def run_facts(config: pytest.Config) -> dict[str, str]:
    """Return the ``run`` object of a report, made when the run starts."""
    selection, settings = chosen(config), config.stash[SETTINGS]
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "pytest": pytest.__version__,
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "version of quiesce": _version(),
        **{f"version of {name}": backend.describe().version for name, backend in selection.backends.items()},
        **{f"{NAMED}{name}": settings.backends_from for name in settings.backends or ()},
        **{f"{SKIPPED}{name}": clean_line(each.explanation) for name, each in selection.unavailable.items()},
    }


def _version() -> str:
    try:
        return importlib.metadata.version("quiesce")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
