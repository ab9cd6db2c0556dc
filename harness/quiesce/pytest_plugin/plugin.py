"""The entry module: pytest loads it in every project where quiesce is installed, so it imports next to nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

import quiesce.leaks.start  # noqa: F401 - it looks before tested code runs
from quiesce.pytest_plugin.keys import (
    EXEC_SETTINGS,
    FOREIGN_FILES,
    INSTALLED_CORPUS,
    LEAK_FIXTURE,
    LEAK_MARKER,
    LEAK_SETTINGS,
    MARKER_ERROR,
    MEMORY_MARKER,
    NOT_RUN,
    SETTINGS,
    SIMULATED_MARKER,
)
from quiesce.pytest_plugin.options import (
    add_leak_options,
    add_options,
    read_leak_settings,
    read_settings,
    reject_unknown_keys,
)

if TYPE_CHECKING:
    from pathlib import Path

    from quiesce.pytest_plugin.case_items import CaseFile
    from quiesce.pytest_plugin.run_record import RunRecord

CASE_SUFFIX = ".case"
CASE_ITEMS = "quiesce-case-items"
FIXTURES = "quiesce.pytest_plugin.fixtures"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare options and ini keys."""
    add_options(parser)
    add_leak_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others can implement."""
    from quiesce.pytest_plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Check the settings before anything runs; register the marker, the fixtures and the record of the run."""
    config.addinivalue_line(
        "markers", f"{LEAK_MARKER}(rounds, seconds, limit, limit_peak, gauges, skip): fail if repeating the test leaks"
    )
    words = "flavour, schedule, seed, capacity, pinned, devices, recycle, fail, stacks, left"
    config.addinivalue_line("markers", f"simulated_device({words}): what the fixture simulated_device gives")
    needs = "wait until the device has so much memory left by other tests, such as '4 GiB'"
    config.addinivalue_line("markers", f"{MEMORY_MARKER}(size): {needs}")
    reject_unknown_keys(config)
    config.stash[SETTINGS] = settings = read_settings(config)
    config.stash[LEAK_SETTINGS] = read_leak_settings(config)
    from quiesce.pytest_plugin import fixtures
    from quiesce.pytest_plugin.run_record import RunRecord

    config.pluginmanager.register(fixtures, "quiesce-fixtures")
    record = RunRecord(config)
    config.pluginmanager.register(record, "quiesce-run-record")
    _read_baseline(config)
    if getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput"):
        _prepare_workers(config, record)
    if os.environ.get(EXEC_SETTINGS) and not hasattr(config, "workerinput"):
        from quiesce.pytest_plugin.handing_over import hand_over

        hand_over(config, os.environ[EXEC_SETTINGS])
    if settings.corpus:
        _add_corpus(config)
    if settings.asked and hasattr(config, "workerinput"):
        from quiesce.pytest_plugin.worker_devices import keep_to_own_device

        keep_to_own_device(config)
    if settings.backends is not None:
        from quiesce.pytest_plugin.selection import chosen

        chosen(config)


def _read_baseline(config: pytest.Config) -> None:
    """Read the file of known leaks, in a run that has one and checks tests."""
    leaks = config.stash[LEAK_SETTINGS]
    if leaks.baseline is not None and not (leaks.off or config.option.collectonly):
        from quiesce.pytest_plugin.leak_baseline import prepare_baseline

        prepare_baseline(config, *leaks.baseline, writes=leaks.writes_baseline)


def _prepare_workers(config: pytest.Config, record: RunRecord) -> None:
    """Take care of the workers that pytest-xdist is about to start."""
    from quiesce.pytest_plugin.worker_devices import WorkerDevices
    from quiesce.pytest_plugin.workers import WorkerCollections, WorkerDeaths

    config.pluginmanager.register(WorkerDeaths(config), "quiesce-worker-deaths")
    config.pluginmanager.register(WorkerCollections(config, record), "quiesce-worker-collections")
    if not config.stash[SETTINGS].shares_devices:
        config.pluginmanager.register(WorkerDevices(config), "quiesce-worker-devices")


def _add_corpus(config: pytest.Config) -> None:
    """Add the corpus to what is collected; pytest itself sees to it that nothing is collected twice."""
    from quiesce.allocators.cases import corpus_directory
    from quiesce.model.errors import ConfigurationError

    try:
        corpus = corpus_directory()
    except ConfigurationError as error:
        raise pytest.UsageError(f"--quiesce-corpus: {error}") from None
    config.args.append(str(corpus))
    if corpus.is_relative_to(sys.prefix) and not config.getoption("collect_in_virtualenv"):
        config.stash[INSTALLED_CORPUS] = corpus


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Find the corpus in a virtual environment below the folder of a run, and nothing else of that environment.

    pytest drops the corpus from its arguments where another argument contains it.
    """
    corpus = config.stash.get(INSTALLED_CORPUS, None)
    if corpus is None or collection_path.is_relative_to(corpus):
        return None
    if corpus.is_relative_to(collection_path):
        return False
    return True if collection_path.is_relative_to(sys.prefix) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    """Collect case files: those named on the command line, and those in folders that have a case's header."""
    if file_path.suffix != CASE_SUFFIX:
        return None
    from quiesce.pytest_plugin import case_items

    if not parent.session.isinitpath(file_path) and not case_items.has_header(file_path):
        root = parent.config.rootpath
        shown = file_path.relative_to(root) if file_path.is_relative_to(root) else file_path
        parent.config.stash.setdefault(FOREIGN_FILES, []).append(shown.as_posix())
        return None
    _register_case_items(parent.config)
    return case_items.CaseFile.from_parent(parent, path=file_path)


def _register_case_items(config: pytest.Config) -> None:
    from quiesce.pytest_plugin import case_items, unsupported_items

    if not config.pluginmanager.is_registered(case_items):
        config.pluginmanager.register(case_items, CASE_ITEMS)
        config.pluginmanager.register(unsupported_items, "quiesce-unsupported-items")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add generated sequences, which no file asks for."""
    settings = config.stash[SETTINGS]
    if settings.explore:
        from quiesce.pytest_plugin.explore_items import explore_items

        _register_case_items(config)
        items += explore_items(session, settings.explore, settings.seed)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say what is about to run and where."""
    return [] if config.option.verbose < 0 or config.option.collectonly else _header(config, items)


def _header(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Return what a run says of its cases, its leak checks and its options; where it has none, nothing is loaded."""
    checked = 0 if config.stash[LEAK_SETTINGS].off else sum(_is_checked(config, item) for item in items)
    if not (checked or config.stash[SETTINGS].asked or config.pluginmanager.has_plugin(CASE_ITEMS)):
        return []
    from quiesce.pytest_plugin.run_header import header_lines

    return header_lines(config, items, checked)


def _tell_collected(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a worker of pytest-xdist, say what it collected."""
    if hasattr(config, "workerinput") and (lines := _header(config, items)):
        from quiesce.pytest_plugin.attaching import as_text
        from quiesce.pytest_plugin.workers import tell_collected

        tell_collected(config, lines, [as_text(result) for result in config.stash.get(NOT_RUN, [])])


@pytest.hookimpl(tryfirst=True)  # a worker of pytest-xdist tells its items there
def pytest_collection_finish(session: pytest.Session) -> None:
    """Find the tests that have to do with devices, and those to check for leaks; without them, nothing is loaded."""
    config = session.config
    if config.option.collectonly or config.option.setuponly:
        return
    _check_simulated_devices(session)
    _hold_memory_apart(session)
    _tell_collected(config, session.items)
    if config.stash[LEAK_SETTINGS].off:
        return
    if hasattr(config, "workerinput") and any(map(_uses_a_backend, session.items)):
        from quiesce.pytest_plugin.worker_devices import keep_to_own_device

        keep_to_own_device(config)
    items = [item for item in getattr(session, "items", ()) if _is_checked(config, item)]
    if items:
        from quiesce.pytest_plugin.leak_checks import register_leak_checks
        from quiesce.pytest_plugin.worker_devices import keep_to_own_device
        from quiesce.pytest_plugin.workers import tell_checked

        keep_to_own_device(config)
        register_leak_checks(session, items)
        tell_checked(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have a test with a marker that makes no sense be an error; wrappers of other plugins run as always."""
    if MARKER_ERROR in item.stash:
        pytest.fail(item.stash[MARKER_ERROR], pytrace=False)


def _hold_memory_apart(session: pytest.Session) -> None:
    """Have tests wait for the device memory that they need, where there are such tests."""
    items = [item for item in getattr(session, "items", ()) if item.get_closest_marker(MEMORY_MARKER) is not None]
    if items and sys.platform != "win32":
        from quiesce.pytest_plugin.device_memory import register_device_memory
        from quiesce.pytest_plugin.worker_devices import keep_to_own_device

        keep_to_own_device(session.config)
        register_device_memory(session.config, items)


def _check_simulated_devices(session: pytest.Session) -> None:
    """Say now what a test's marker asks for that makes no sense."""
    items = [item for item in getattr(session, "items", ()) if item.get_closest_marker(SIMULATED_MARKER) is not None]
    if items:
        from quiesce.model.errors import ConfigurationError
        from quiesce.pytest_plugin.simulated_device import check_markers, refuse
        from quiesce.reporting import clean_line

        try:
            check_markers(items)
        except ConfigurationError as error:
            refuse(session, clean_line(str(error)))


def _uses_a_backend(item: pytest.Item) -> bool:
    """Whether an ordinary test has a fixture of quiesce."""
    fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    functions = (each.func for definitions in fixtures.values() for each in definitions)
    return any(getattr(function, "__module__", "") == FIXTURES for function in functions)


def _is_checked(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether an ordinary test is to be checked: it asks for it, by the marker or the fixture, or all tests are."""
    if item.path.suffix == CASE_SUFFIX or item.path.is_dir():  # a case, or sequences, which have no file
        return False
    asks = LEAK_FIXTURE in getattr(item, "fixturenames", ()) or item.get_closest_marker(LEAK_MARKER) is not None
    return asks or config.stash[LEAK_SETTINGS].checks_all
