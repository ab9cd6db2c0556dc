"""The simulated runtime compiles: the other tests are skipped where it can't be, and would not say so."""

from __future__ import annotations

import subprocess

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


def test_a_compiler_that_sees_the_whole_program_at_once_does_so() -> None:
    version = subprocess.run([*find_compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    if "Free Software Foundation" not in version:
        pytest.skip("only GCC says in the library how that was compiled")
    assert b"GNU GIMPLE" in build_library().read_bytes()
