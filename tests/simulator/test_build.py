"""The simulated runtime compiles: the other tests are skipped where it can't be, and would not say so."""

from __future__ import annotations

import pytest

from quiesce.errors import BackendUnavailable
from quiesce.simulator.build import build_audit, build_library, find_compiler, require_platform


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        require_platform()
        find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_the_runtime_compiles_where_there_is_a_compiler() -> None:
    assert build_library().exists()


def test_the_module_for_the_loader_compiles_where_there_is_a_compiler() -> None:
    assert build_audit().exists()
