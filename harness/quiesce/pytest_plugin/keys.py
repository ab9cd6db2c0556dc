"""Names under which the plugin keeps and sends what it knows. Light, because everything here imports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from quiesce.backends.registry import Unusable
    from quiesce.leaks import ContextMeter
    from quiesce.model.backend import Backend, Description
    from quiesce.model.results import Result
    from quiesce.pytest_plugin.leak_tests import LeakTest
    from quiesce.pytest_plugin.options import LeakSettings, Settings


SETTINGS: Final[pytest.StashKey[Settings]] = pytest.StashKey()
"""In ``config.stash``: what the user asked for."""

LEAK_SETTINGS: Final[pytest.StashKey[LeakSettings]] = pytest.StashKey()
"""In ``config.stash``: what the user asked of the leak checks."""

SELECTION: Final[pytest.StashKey[Selection]] = pytest.StashKey()
"""In ``config.stash``: the backends of the run, once something needed them."""

INSTALLED_CORPUS: Final[pytest.StashKey[Path]] = pytest.StashKey()
"""In ``config.stash``: the corpus that was asked for, if it is installed in a virtual environment."""

NOT_RUN: Final[pytest.StashKey[list[Result]]] = pytest.StashKey()
"""In ``config.stash``: the results of cases that their backend cannot run, which make no items."""

DESCRIPTIONS: Final[pytest.StashKey[dict[str, Description | None]]] = pytest.StashKey()
"""In ``config.stash``: what the backends say about themselves, by name, once items were collected on them."""

FOREIGN_FILES: Final[pytest.StashKey[list[str]]] = pytest.StashKey()
"""In ``config.stash``: files named ``*.case`` that were left out because they are no cases of quiesce."""

LEAK_MARKER: Final = "leak"
"""The marker of tests that are checked for leaks, and of every case."""

SIMULATED_MARKER: Final = "simulated_device"
"""The marker that says which simulated GPU a test gets."""

MEMORY_MARKER: Final = "device_memory"
"""The marker that says how much device memory a test needs."""

DEVICE_FIXTURE: Final = "simulated_device"
"""The fixture that gives a simulated GPU, and judges what the test did with it."""

LEAK_FIXTURE: Final = "leak_check"
"""The fixture that asks for a leak check."""

RESULT_ATTRIBUTE: Final = "quiesce_result"
"""The attribute of a report that carries the result as JSON; pytest-xdist sends a report's own attributes along."""

OWN_ERROR_ATTRIBUTE: Final = "quiesce_own_error"
"""The attribute of a report that is true where an error in quiesce itself kept a case from having a result."""

LEAK_SECONDS_ATTRIBUTE: Final = "quiesce_leak_seconds"
"""The attribute of a report that says how many seconds the leak check of its test took, and how many it has."""

DEVICE_ATTRIBUTE: Final = "quiesce_device_result"
"""The attribute of a report that carries the result of the fixture ``simulated_device`` as JSON."""

DEVICE_RESULT: Final[pytest.StashKey[str]] = pytest.StashKey()
"""In ``item.stash``: that result, until it is on a report."""

EXEC_SETTINGS: Final = "QUIESCE_SIMULATOR"
"""What ``quiesce exec`` sets for its program, by the name that :mod:`quiesce.simulator.runtime.launch` has for it."""

BACKEND_PROPERTY: Final = "quiesce_backend"
"""The property of a report, and so of a JUnit test case, that names the backend it ran on."""

NOTES: Final = "quiesce_notes"
"""The key of ``config.workeroutput`` under which a worker of pytest-xdist sends what it left out."""

REFUSED: Final = "quiesce_refused"
"""The key of ``config.workeroutput`` under which a worker says why the run is to end before any test."""

OWN_DEVICES: Final[pytest.StashKey[dict[str, str]]] = pytest.StashKey()
"""In ``config.stash`` of a worker of pytest-xdist: its name and the devices that it keeps to, once it does."""

CALL_FAILED: Final[pytest.StashKey[bool]] = pytest.StashKey()
"""In ``item.stash``: the test itself failed, so that what it holds is no finding."""

LEAK_TEST: Final[pytest.StashKey[LeakTest]] = pytest.StashKey()
"""In ``item.stash``: the leak check of an ordinary test that is to be checked."""

MARKER_ERROR: Final[pytest.StashKey[str]] = pytest.StashKey()
"""In ``item.stash``: what is wrong with a marker of the test, and what to write instead."""

CONTEXT_METER: Final[pytest.StashKey[ContextMeter]] = pytest.StashKey()
"""In ``config.stash``: what watches the contexts that tests open, in a run that has a test to check."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen backends by name, in the order they run, and those that cannot work here."""

    backends: Mapping[str, Backend]
    unavailable: Mapping[str, Unusable]
