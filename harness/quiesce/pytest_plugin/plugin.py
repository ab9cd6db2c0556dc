"""The entry module: pytest loads it in every project where quiesce is installed, so it imports next to nothing."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quiesce.pytest_plugin.keys import FOREIGN_FILES, SETTINGS
from quiesce.pytest_plugin.options import add_options, read_settings

if TYPE_CHECKING:
    from pathlib import Path

    from quiesce.pytest_plugin.case_items import CaseFile

CASE_SUFFIX = ".case"
MARKER = "leak"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare options and ini keys."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others can implement."""
    from quiesce.pytest_plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Check the settings before anything runs; register the marker, the fixtures and the record of the run."""
    config.addinivalue_line("markers", f"{MARKER}: memory must be back where it was; 'pytest -m {MARKER}' runs these")
    config.stash[SETTINGS] = settings = read_settings(config)
    from quiesce.pytest_plugin import fixtures
    from quiesce.pytest_plugin.run_record import RunRecord

    config.pluginmanager.register(fixtures, "quiesce-fixtures")
    config.pluginmanager.register(RunRecord(config), "quiesce-run-record")
    if settings.corpus:
        _add_corpus(config)
    if settings.backends is not None:
        from quiesce.pytest_plugin.selection import chosen

        chosen(config)


def _add_corpus(config: pytest.Config) -> None:
    """Add the corpus to what is collected, unless one of the arguments holds it already."""
    from quiesce.cases.catalogue import corpus_directory
    from quiesce.errors import ConfigurationError

    try:
        corpus = corpus_directory().resolve()
    except ConfigurationError as error:
        raise pytest.UsageError(f"--quiesce-corpus: {error}") from None
    given = (config.invocation_params.dir / argument.partition("::")[0] for argument in config.args)
    if not any(corpus.is_relative_to(path.resolve()) for path in given):
        config.args.append(str(corpus))


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
    plugins = parent.config.pluginmanager
    if not plugins.is_registered(case_items):
        plugins.register(case_items, "quiesce-case-items")
    return case_items.CaseFile.from_parent(parent, path=file_path)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse arguments of the marker, so that none is ignored in silence."""
    for marker in item.iter_markers(MARKER):
        if marker.args or marker.kwargs:
            shown = ", ".join([*map(repr, marker.args), *(f"{key}={value!r}" for key, value in marker.kwargs.items())])
            pytest.fail(
                f"the marker '{MARKER}' takes no arguments, not ({shown}); write @pytest.mark.{MARKER}", pytrace=False
            )
