"""The option that chooses rows of the matrix of clients."""

from __future__ import annotations

import pytest
from tests.clients.rows import chosen_rows


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--client``."""
    parser.addoption(
        "--client",
        action="append",
        metavar="NAME",
        help="run only this row or package of rows.toml, or a release that no row has: cupy-cuda12x==14.1.0",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of the matrix once for each row that was chosen."""
    if "row" in metafunc.fixturenames:
        try:
            rows = chosen_rows(metafunc.config.getoption("--client", default=None) or [])
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        metafunc.parametrize("row", rows, ids=[row.identifier for row in rows])
