"""The record of a run: results as they arrive where pytest was started, the reports and the summary made of them.

It is there in every run of every project, so it imports when it must.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quiesce.pytest_plugin.keys import (
    BACKEND_PROPERTY,
    FOREIGN_FILES,
    LEAK_SECONDS_ATTRIBUTE,
    LEAK_SETTINGS,
    NOT_RUN,
    NOTES,
    OWN_DEVICES,
    OWN_ERROR_ATTRIBUTE,
    REFUSED,
    RESULT_ATTRIBUTE,
    SELECTION,
    SETTINGS,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from quiesce.model.results import Report, Result
    from quiesce.reporting import ReportFolder


class RunRecord:
    """A plugin that keeps what a run found. Under pytest-xdist its workers only hand their notes over."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._is_worker = hasattr(config, "workerinput")
        self._results: list[Result] = []
        self._unavailable: dict[str, tuple[str, str]] = {}
        self._foreign: set[str] = set()
        self._ordinary_backends: set[str] = set()
        self._folder: ReportFolder | None = None
        self._reported: set[str] = set()
        self._write_error = ""
        self._facts: dict[str, str] = {}
        self._devices: dict[str, str] = {}
        self._went_through = False
        self._refused = ""
        self._asked_in_vain: list[Result] = []
        self._leak_seconds = 0.0
        self._slow_checks: list[str] = []
        self._own_errors: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Begin the reports; a folder that cannot be written ends the run before any test."""
        if self._settings.report is None or self._is_worker or self._config.option.collectonly:
            return
        from quiesce.pytest_plugin.run_header import run_facts
        from quiesce.reporting import ReportFolder

        self._facts = run_facts(self._config)
        folder = ReportFolder(self._settings.report, seed=self._settings.seed, run=self._facts)
        try:
            self._folder = folder.__enter__()
        except OSError as error:
            from quiesce.reporting import clean_line

            why = "it is a file" if isinstance(error, FileExistsError) else error.strerror or str(error)
            where = clean_line(str(error.filename or self._settings.report))
            raise pytest.UsageError(
                f"{self._settings.report_from}: no report can be written to '{where}': {why}; name another folder"
            ) from None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Note that the loop came to its end: an interruption of an interruption leaves no other trace.

        Where a worker refused what it collected, pytest-xdist calls that an interruption once all workers have ended.
        """
        try:
            result = yield
        except KeyboardInterrupt:
            if self._refused:
                raise pytest.UsageError(self._refused) from None
            raise
        self._went_through = True
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result that a report carries; it is on disk before the next one is waited for."""
        text = getattr(report, RESULT_ATTRIBUTE, None)
        if self._is_worker:
            return
        if getattr(report, OWN_ERROR_ATTRIBUTE, False):
            self._own_errors.append(report.nodeid)
        if self._folder is not None:
            self._reported.add(report.nodeid)
        if timed := getattr(report, LEAK_SECONDS_ATTRIBUTE, None):
            self._leak_seconds += timed[0]
            if timed[0] > timed[1]:
                self._slow_checks.append(f"{report.nodeid} took {timed[0]:.1f} s, more than its {timed[1]:g} s")
        if text is None:
            self._ordinary_backends.update(
                str(value) for name, value in report.user_properties if name == BACKEND_PROPERTY
            )
            return
        from quiesce.reporting import result_from_record

        # pytest-rerunfailures counts its repetitions there
        result = replace(result_from_record(json.loads(text)), attempt=getattr(report, "rerun", 0) + 1)
        self._asked_in_vain += [] if result.verdict.executed else [result]
        self._keep(result)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the results of cases that their backend cannot run; workers tell theirs over a channel."""
        if not self._is_worker and not self._config.option.collectonly:
            for result in session.config.stash.get(NOT_RUN, []):
                self._keep(result)

    def keep_not_run(self, records: Iterable[str]) -> None:
        """Keep the results of cases that their backend cannot run, as a worker told them."""
        from quiesce.reporting import result_from_record

        for text in records:
            self._keep(result_from_record(json.loads(text)))

    def _keep(self, result: Result) -> None:
        self._results.append(result)
        if self._folder is not None and not self._write_error:
            try:
                self._folder.add(result)
            except OSError as error:
                self._write_error = str(error)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the notes of a worker that has finished; one that died left none."""
        notes = getattr(node, "workeroutput", {}).get(NOTES)
        if notes is not None:
            self._unavailable.update({name: tuple(matter) for name, matter in notes["unavailable"].items()})
            self._foreign.update(notes["foreign"])
            self._devices.update(notes["devices"])
        self._refused = self._refused or getattr(node, "workeroutput", {}).get(REFUSED, "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Hand a worker's notes over, or write the reports.

        A run whose report cannot be written is no success, and one that met an error in quiesce itself no verdict.
        """
        selection = self._config.stash.get(SELECTION, None)
        if selection is not None:
            self._unavailable.update({name: each.in_short for name, each in selection.unavailable.items()})
        foreign: list[str] = self._config.stash.get(FOREIGN_FILES, [])
        self._foreign.update(foreign)
        if self._is_worker:
            notes = {
                "unavailable": self._unavailable,
                "foreign": sorted(self._foreign),
                "devices": self._config.stash.get(OWN_DEVICES, {}),
            }
            self._config.workeroutput[NOTES] = notes  # type: ignore[attr-defined]
            return
        if self._folder is not None:
            try:
                self._folder.__exit__(self._what_ended(session, exitstatus), None, None)
            except OSError as error:
                self._write_error = self._write_error or str(error)
        self._drop_earlier_attempts()
        hook = self._config.hook.pytest_quiesce_report
        if self._results and hook.get_hookimpls():
            hook(report=self._report())
        met_own_error = self._own_errors and exitstatus == pytest.ExitCode.TESTS_FAILED
        if met_own_error or (
            self._write_error and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        ):
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        elif exitstatus == pytest.ExitCode.OK and self._open_checks():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _open_checks(self) -> list[Result]:
        """Return the leak checks without a verdict whose tests do not fail, in a run that may have none."""
        if not self._config.stash[LEAK_SETTINGS].is_strict:
            return []
        from quiesce.model.results import Verdict

        open_ = (each for each in self._results if each.is_leak_check and each.verdict is Verdict.INCONCLUSIVE)
        return [each for each in open_ if not each.is_unresolved]

    def _what_ended(self, session: pytest.Session, exitstatus: int) -> type[BaseException] | None:
        """Return what ended the run before every test had its turn, or None.

        A run whose workers died and may not be replaced ends as if it had been through.
        """
        is_cut_short = len(self._reported) < session.testscollected
        if exitstatus == pytest.ExitCode.INTERRUPTED or session.shouldfail or session.shouldstop or is_cut_short:
            return KeyboardInterrupt
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            return RuntimeError
        return None if self._went_through else KeyboardInterrupt

    def _drop_earlier_attempts(self) -> None:
        if self._results:
            from quiesce.reporting import last_attempts

            self._results = last_attempts(self._results)

    def _report(self) -> Report:
        from quiesce.model.results import Report
        from quiesce.pytest_plugin.run_header import run_facts
        from quiesce.reporting import ordered

        return Report(self._settings.seed, tuple(ordered(self._results)), self._facts or run_facts(self._config))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what ran where, and loudly where nothing did; silent in a run that has nothing of quiesce."""
        asked = self._config.getoption("--quiesce-backend") or self._settings.corpus
        if self._config.option.collectonly or not (self._results or asked):
            return
        checks = [result for result in self._results if result.is_leak_check]
        cases = [result for result in self._results if not result.is_leak_check]
        lines, warnings = self._lines(cases, asked=bool(asked))
        if lines or warnings or not checks:
            terminalreporter.section("quiesce")
            for line in lines:
                terminalreporter.line(line)
            for line in warnings:
                terminalreporter.line(line, red=True, bold=True)
            if cases or not checks:
                self._conclude(terminalreporter, cases)
        if checks:
            self._tell_leaks(terminalreporter, checks)

    def _lines(self, cases: list[Result], *, asked: bool) -> tuple[list[str], list[str]]:
        """Return what is to be said of cases and of the run, and what of it is a warning."""
        from quiesce.reporting import (
            clean_line,
            count_by_backend,
            empty_warnings,
            left_out_lines,
            not_run_lines,
            summary_table,
        )

        counts = count_by_backend(cases, set(self._settings.backends or ()) - self._ordinary_backends)
        is_said = cases and self._config.option.verbose >= 0  # in the header
        unavailable = {} if is_said or not (cases or asked) else self._unavailable
        lines = [
            *(summary_table(counts) if counts else ()),
            *left_out_lines(unavailable),
            *not_run_lines(self._asked_in_vain),
        ]
        left_out = "it has no line of a case's header, such as 'title: …'"
        lines += [f"left out {clean_line(path)}: {left_out}" for path in sorted(self._foreign)]
        lines += [f"worker {name} kept to {device}" for name, device in sorted(self._devices.items())]
        if self._folder is not None and (note := _page_note()):
            lines.append(note)
        warnings = empty_warnings(counts, self._settings.backends or (), cases)
        if self._write_error:
            warnings.append(f"THE REPORT COULD NOT BE WRITTEN: {clean_line(self._write_error)}")
        warnings += [
            f"{clean_line(each)}: an error in quiesce itself, not a finding; please report it with its traceback"
            for each in dict.fromkeys(self._own_errors)
        ]
        return lines, warnings

    def _conclude(self, terminalreporter: pytest.TerminalReporter, cases: list[Result]) -> None:
        from quiesce.reporting import conclusions

        seed = f"; seed {self._settings.seed}" if self._settings.seed else ""
        for line in conclusions(cases):
            terminalreporter.line(f"{line}{seed}")
        if "GITHUB_ACTIONS" in os.environ:
            from quiesce.pytest_plugin.github_actions import tell_github_of_cases

            tell_github_of_cases(terminalreporter, cases)

    def _tell_leaks(self, terminalreporter: pytest.TerminalReporter, checks: list[Result]) -> None:
        from quiesce.reporting import checks_in_short, leak_check_lines, shortened

        terminalreporter.section("leak checks")
        for line in (*leak_check_lines(checks), *shortened(self._slow_checks)):
            terminalreporter.line(line)
        terminalreporter.line(f"{checks_in_short(checks)}; {self._leak_seconds:.1f} s")
        if "GITHUB_ACTIONS" in os.environ:
            from quiesce.pytest_plugin.github_actions import tell_github

            tell_github(terminalreporter, checks)
        if self._open_checks():
            terminalreporter.line("the run fails: tests without a verdict, and --quiesce-strict", red=True, bold=True)


def _page_note() -> str:
    from quiesce.reporting import why_unavailable

    return why_unavailable()
