"""Items that the command line names one by one, as in ``cases/pool/reuse.case::host``."""

from __future__ import annotations

from pathlib import Path

import pytest


def names_item(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether one of pytest's arguments is the node id of an item."""
    for argument in config.args:
        path, colons, name = argument.partition("::")
        if colons and name == item.name and _same(config.invocation_params.dir / path, item.path):
            return True
    return False


def _same(one: Path, other: Path) -> bool:
    return one == other or one.resolve() == other.resolve()
