"""The options that choose rows of the matrix of clients, or try a package that has none."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.clients.rows import Row, chosen_rows

_ROWS: Final = pytest.StashKey[list[Row]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--client`` and ``--program``."""
    parser.addoption(
        "--client",
        action="append",
        metavar="NAME",
        help="run only this row or package of rows.toml, or a release that no row has: cupy-cuda12x==14.1.0",
    )
    parser.addoption(
        "--program",
        action="append",
        type=Path,
        metavar="FILE",
        help="run this program instead of those of the row; so --client may name any packages, such as 'xgboost numpy'",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the rows, so that a wrong choice is told before anything is run."""
    words, programs = (config.getoption(name, default=None) or [] for name in ("--client", "--program"))
    try:
        config.stash[_ROWS] = chosen_rows(words, [path.resolve() for path in programs])
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of the matrix once for each row that was chosen."""
    if "row" in metafunc.fixturenames:
        rows = metafunc.config.stash[_ROWS]
        metafunc.parametrize("row", rows, ids=[row.identifier for row in rows])
