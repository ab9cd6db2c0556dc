"""What a backend cannot do makes no item: the results of those cases are made while pytest collects.

All cases are collected on all backends at first, so that ``-k``, ``-m``, ``--deselect`` and node ids select among them
as among all tests. Then the items are taken out that their backend cannot run: it lacks a capability that the case
needs, or does not make a promise that the case tests. An item that the command line names by its node id, as in
``cases/pool/reuse.case::host``, stays, and is skipped with the reason.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quiesce.allocators.execution import described, out_of_scope
from quiesce.pytest_plugin.case_items import CaseItem, reproduce
from quiesce.pytest_plugin.keys import DESCRIPTIONS, NOT_RUN

if TYPE_CHECKING:
    from quiesce.model.backend import Description
    from quiesce.model.results import Result


def names_item(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether one of pytest's arguments is the node id of an item."""
    for argument in config.args:
        path, colons, name = argument.partition("::")
        if colons and name == item.name and _same(config.invocation_params.dir / path, item.path):
            return True
    return False


def _same(one: Path, other: Path) -> bool:
    return one == other or one.resolve() == other.resolve()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Take out what its backend cannot do, after everybody else selected and ordered."""
    result = yield
    not_run = config.stash.setdefault(NOT_RUN, [])
    kept: list[pytest.Item] = []
    for item in items:
        unsuited = _unsuited(item, config) if isinstance(item, CaseItem) else None
        if unsuited is None or names_item(config, item):
            kept.append(item)
        else:
            not_run.append(unsuited)
    _count_again(config, len(items) - len(kept))
    items[:] = kept
    return result


def _unsuited(item: CaseItem, config: pytest.Config) -> Result | None:
    """Return the result of an item that its backend cannot run; None where it can, and where a policy wants it run."""
    description = _description(item, config)
    result = None if description is None else out_of_scope(item.case, description)
    if result is None:
        return None
    result = replace(result, backend=item.name, reproduce=reproduce(item.case.path, item.name))
    try:
        adjusted: Result | None = item.ihook.pytest_quiesce_adjust_result(result=result)
    except Exception:
        return None  # the item fails with it when it runs
    return None if adjusted is not None and adjusted.verdict.executed else adjusted or result


def _description(item: CaseItem, config: pytest.Config) -> Description | None:
    """Return what a backend says about itself; it is asked once for all cases."""
    descriptions = config.stash.setdefault(DESCRIPTIONS, {})
    if item.name not in descriptions:
        descriptions[item.name] = described(item.backend)
    return descriptions[item.name]


def _count_again(config: pytest.Config, taken_out: int) -> None:
    """Have pytest say how many items there are now: it counted them when their files were read."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and hasattr(reporter, "_numcollected"):  # pytest has no public way to correct it
        reporter._numcollected -= taken_out
