"""The commands of the documentation that no test runs, each with its reason. All others are run."""

from __future__ import annotations

import re
from typing import Final

OF_RELEASES: Final = (
    "it builds a release; tests/subjects/test_named.py runs such names, and test_release_pages.py those of the tutorial"
)
WITH_CUPY: Final = "it needs CuPy for CUDA; tests/simulator/test_cupy_pages.py runs it with that"
WITH_NUMBA: Final = "it needs numba-cuda; tests/simulator/test_numba.py runs it with that"

UNRUN: Final = {
    r"git clone .*": "it downloads; the commands of such a page are run as in a clone",
    r"(?:python -m )?pip install .*": "it installs from an index, or into the environment of the tests",
    r"python -m venv .*": "it makes an environment; tests/test_packaging.py installs the wheel into one",
    r".*\btox(?: .*)?": "it runs the tests; test_pages.py knows its environments",
    r"(?:quiesce|pytest) .*subject:.*": OF_RELEASES,
    r"quiesce subjects(?: .*)?": "it downloads and builds releases; the environment 'subjects' runs all of them",
    r"quiesce conformance .*--backend[ =]served:.*": "it takes a minute; tests/test_serving.py asks the same",
    r"quiesce shrink found/some\.case .*": "it needs a case that fails on the reader's allocator",
    r"valgrind .*": "Valgrind may be missing; tests/traces/reports has reports of it",
    r"python benchmarks/.*": "it measures for minutes",
    r"(?:quiesce exec -- )?python -m pytest -q .*test_(?:scaling|cache)\.py": WITH_CUPY,
    r"quiesce exec -- python -c \"import cupy; .*\"": WITH_CUPY,
    r"quiesce exec .*python add_with_numba\.py": WITH_NUMBA,
    r"(?:dask|mpiexec) .*|quiesce .*--executor .*": "it needs a cluster; tests/cli/test_executors.py has small ones",
    r"pytest --quiesce-explore .*": "it takes minutes; tests/pytest_plugin/test_explore_items.py runs fewer operations",
    r"quiesce .*--backend[ =]cupy.*|quiesce doctor cupy.*": "it needs a GPU and CuPy",
}
"""Patterns of whole commands."""

SHORTENED: Final = {r"quiesce (?:conformance|explore) .*": " --operations 500"}
"""What is added to commands that would run for a minute, where their output is not compared."""


def reason_not_to_run(command: str) -> str | None:
    """Return why a command is not run, or None for one that is."""
    return next((reason for pattern, reason in UNRUN.items() if re.fullmatch(pattern, command)), None)


def words_to_shorten(command: str) -> str:
    """Return the words that let a command end sooner."""
    return next((words for pattern, words in SHORTENED.items() if re.fullmatch(pattern, command)), "")
