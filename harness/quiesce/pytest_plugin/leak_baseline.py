"""The file of known leaks in a run of pytest: read where tests are checked, written where pytest was started.

Each checked test says on its report which entries it used, which it did not need, and what grew. So under pytest-xdist
the workers' entries meet in one place, which alone writes the file.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.leaks import (
    RECORDED,
    Applied,
    Growth,
    Judgement,
    KnownLeak,
    Plan,
    amount_of,
    apply_known,
    family_of,
    gauge_name,
    merged,
    read_known,
    write_known,
)
from quiesce.model.errors import ConfigurationError
from quiesce.model.findings import INSTALLED
from quiesce.model.wording import counted, shown_path
from quiesce.pytest_plugin.keys import LEAK_SETTINGS
from quiesce.reporting import clean_line

HEADROOM: Final = 4
"""What is measured, and not counted, differs from run to run: a quarter more is written than was found."""


def today() -> date:
    """Return the day by which entries expire."""
    return date.today()


@dataclass
class Baseline:
    """The file of one run. ``source`` names the option or ini key, ``writes`` says that the file is written anew."""

    path: Path
    source: str
    writes: bool
    known: tuple[KnownLeak, ...] = ()
    _installed: dict[str, str] = field(default_factory=dict)

    def read(self) -> None:
        """Read the file. Raises :class:`pytest.UsageError` with one line."""
        if self.writes and not self.path.exists():
            return
        try:
            self.known = read_known(self.path)
        except FileNotFoundError:
            how = "--quiesce-leak-write-baseline writes it"
            raise pytest.UsageError(f"{self.source}: there is no file '{self.path}'; {how}") from None
        except (OSError, ConfigurationError) as error:
            raise pytest.UsageError(f"{self.source}: {self.path}: {clean_line(str(error))}") from None

    def apply(self, test: str, judgement: Judgement, plan: Plan) -> Applied:
        """Take from a judgement what is known, or what is to be written now."""
        applied = apply_known(self.known, test, judgement, plan, self._versions(), today())
        if self.writes and not any(self._is_over(each, test) for each in self.known):
            return Applied(
                replace(judgement, growths=()),
                judgement.growths,
                applied.left.growths,
                applied.reasons or (RECORDED,) * bool(judgement.growths),
                applied.used,
                applied.unused,
            )
        return applied

    def _is_over(self, entry: KnownLeak, test: str) -> bool:
        return entry.is_about(test) and entry.expires is not None and entry.expires < today()

    def _versions(self) -> dict[str, str]:
        for name in (name for entry in self.known for name, _ in entry.versions):
            if name not in self._installed:
                self._installed[name] = installed_version(name)
        return self._installed

    def told(self, test: str, applied: Applied) -> str:
        """Return what a checked test has to say about the file, as JSON."""
        grown = [self._entry_of(test, growth) for growth in applied.unwritten]
        return json.dumps({"used": applied.used, "unused": applied.unused, "grown": grown})

    def _entry_of(self, test: str, growth: Growth) -> dict[str, Any]:
        """Return the values of the entry that accepts a growth. One for this test that allows less is raised."""
        amount, gauge = amount_of(growth), gauge_name(growth.quantity)
        if not family_of(growth.quantity.family).counts_blocks and growth.quantity.unit == "bytes":
            amount += amount // HEADROOM
        versions = next(
            (
                each.versions
                for each in self.known
                if (each.test, each.gauge) == (test, gauge) and not each.other_versions(self._versions())
            ),
            None,
        )
        return {
            "test": test,
            "gauge": gauge,
            "up_to": amount,
            "is_size": growth.quantity.unit == "bytes",
            "versions": sorted(_versions_concerned(growth).items()) if versions is None else versions,
        }


def installed_version(name: str) -> str:
    """Return the version of Python or of an installed package, or an empty text."""
    if name == "python":
        return platform.python_version()
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _versions_concerned(growth: Growth) -> dict[str, str]:
    """Return the versions of Python and of the package whose line it is."""
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    if installed := INSTALLED.search(growth.origin.replace("\\", "/")):
        for name in importlib.metadata.packages_distributions().get(installed[1], ()):
            versions[name] = installed_version(name)
    return versions


BASELINE: Final[pytest.StashKey[Baseline]] = pytest.StashKey()
"""In ``config.stash``: the file of known leaks, in a run that has one."""

BASELINE_ATTRIBUTE: Final = "quiesce_known_leaks"
"""The attribute of a report that says what its test has to do with the file of known leaks, as JSON."""

DESELECTED: Final[pytest.StashKey[bool]] = pytest.StashKey()
"""In ``config.stash`` of a run with a file of known leaks: whether collected tests were left out."""
DESELECTED_OUTPUT: Final = "quiesce_deselected"
"""The key of ``config.workeroutput`` under which a worker says that tests were left out."""


class BaselineRecord:
    """A plugin of the run, where pytest was started: it fails a run with a needless entry, and writes the file."""

    def __init__(self, config: pytest.Config, baseline: Baseline) -> None:
        self._config = config
        self._baseline = baseline
        self._used: set[str] = set()
        self._unused: set[str] = set()
        self._found: dict[str, KnownLeak] = {}
        self._tests: set[str] = set()
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test says about the file."""
        if report.when == "setup":
            self._tests.add(report.nodeid)
        if text := getattr(report, BASELINE_ATTRIBUTE, None):
            said = json.loads(text)
            self._used.update(said["used"])
            self._unused.update(said["unused"])
            for entry in (self._made(values) for values in said["grown"]):
                before = self._found.get(entry.key)
                if before is None or (entry.up_to or 0) > (before.up_to or 0):
                    self._found[entry.key] = entry

    @staticmethod
    def _made(values: dict[str, Any]) -> KnownLeak:
        versions = tuple((str(name), str(version)) for name, version in values.pop("versions"))
        return KnownLeak(reason=RECORDED, versions=versions, **values)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Note whether a worker left tests out."""
        self._config.stash[DESELECTED] |= bool(getattr(node, "workeroutput", {}).get(DESELECTED_OUTPUT))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the file, or fail for entries that are not needed."""
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        needless = sorted(self._unused - self._used)
        gone = [entry.key for entry in self._gone()] if len(self._tests) >= session.testscollected else []
        if self._baseline.writes:
            self._write(session, {*needless, *gone})
            return
        name = clean_line(shown_path(str(self._baseline.path)))
        self._lines += [f"{name}: {clean_line(key)} is not needed: the test no longer leaks so" for key in needless]
        self._lines += [f"{name}: {clean_line(key)} is not needed: there is no such test" for key in gone]
        fails = bool(self._lines)
        if fails:
            self._lines.append(
                "the run fails: remove these entries, or write the file with --quiesce-leak-write-baseline"
            )
        fails |= self._ask_for_reasons(name)
        if fails and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _ask_for_reasons(self, name: str) -> bool:
        """Name the entries that have no reason yet, and return whether the run fails for that."""
        unexplained = [entry.key for entry in self._baseline.known if entry.lacks_reason]
        self._lines += [f"{name}: {clean_line(key)} has no reason yet" for key in unexplained]
        is_strict = bool(unexplained) and self._config.stash[LEAK_SETTINGS].is_strict
        if unexplained:
            what = "write why the leak is accepted in its reason"
            self._lines.append(f"the run fails: --quiesce-strict, and {what}" if is_strict else what)
        return is_strict

    def _write(self, session: pytest.Session, needless: set[str]) -> None:
        entries = merged(self._baseline.known, self._found.values(), self._used, needless)
        name = clean_line(shown_path(str(self._baseline.path)))
        try:
            write_known(self._baseline.path, entries)
        except OSError as error:
            self._lines.append(f"{name} could not be written: {clean_line(str(error))}")
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        else:
            said = "give each its reason before you commit it" if self._found else "nothing new leaks"
            self._lines.append(f"{name}: {counted(len(entries), 'known leak')} written; {said}")

    def _gone(self) -> Iterator[KnownLeak]:
        """Yield the entries of tests that a run of their whole file does not have."""
        option = self._config.option
        chosen = option.keyword or option.markexpr or any("::" in argument for argument in self._config.args)
        if chosen or self._config.stash[DESELECTED]:
            return
        files = {name.partition("::")[0] for name in self._tests}
        for entry in self._baseline.known:
            if entry.test.partition("::")[0] in files and not any(map(entry.is_about, self._tests)):
                yield entry

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what is wrong with the file, or that it was written."""
        if self._lines:
            terminalreporter.section("known leaks")
            for line in self._lines:
                terminalreporter.line(line)


class Deselection:
    """A plugin that notes whether collected tests were left out, here or in a worker."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        config.stash[DESELECTED] = False

    def pytest_deselected(self) -> None:
        """Note it."""
        self._config.stash[DESELECTED] = True
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[DESELECTED_OUTPUT] = True


def prepare_baseline(config: pytest.Config, path: Path, source: str, *, writes: bool) -> None:
    """Read the file of known leaks and register what judges it. Raises :class:`pytest.UsageError` with one line."""
    baseline = Baseline(path, source, writes)
    baseline.read()
    config.stash[BASELINE] = baseline
    config.pluginmanager.register(Deselection(config), "quiesce-leak-deselection")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(BaselineRecord(config, baseline), "quiesce-leak-baseline")
