"""The leak checks of ordinary tests. Registered only in a run that has a test to check.

A test's rounds are run before its setup, and judged. The first of them is the one that is reported: it fails the way it
fails, and if it passes although the test leaks, it is the call that fails. So whatever looks at reports or repeats
failures sees an ordinary test.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from quiesce.leaks import (
    MARKER_OPTIONS,
    OWN,
    ROUNDS_MAX,
    ROUNDS_MIN,
    Applied,
    Judgement,
    LeakChecker,
    Outcome,
    Owners,
    Plan,
    adjusted,
)
from quiesce.model.errors import ConfigurationError
from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.pytest_plugin.attaching import attach
from quiesce.pytest_plugin.keys import (
    CONTEXT_METER,
    DEVICE_FIXTURE,
    LEAK_FIXTURE,
    LEAK_MARKER,
    LEAK_SECONDS_ATTRIBUTE,
    LEAK_SETTINGS,
    LEAK_TEST,
    MARKER_ERROR,
)
from quiesce.pytest_plugin.leak_baseline import BASELINE, BASELINE_ATTRIBUTE
from quiesce.pytest_plugin.leak_progress import LeakProgress, progress_writer
from quiesce.pytest_plugin.leak_results import (
    CHECK_FAILED,
    leak_result,
    leak_text,
    left_out_result,
    no_verdict_finding,
    open_reason,
    peak_findings,
    verdict_of,
    warn_of,
)
from quiesce.pytest_plugin.leak_rounds import FirstRun, ForkedChildren, KernelFaults, TestRounds, release_frames
from quiesce.pytest_plugin.leak_tests import LeakTest
from quiesce.pytest_plugin.neighbours import (
    RoundTimeouts,
    failed_subtests,
    is_expected_to_fail,
    start_timeout,
    stop_timeout,
)
from quiesce.reporting import clean_line, leak_in_short


def asks_for_leak_check(item: pytest.Item) -> bool:
    """Whether a test itself asks for a check, by the marker or by the fixture."""
    return LEAK_FIXTURE in getattr(item, "fixturenames", ()) or item.get_closest_marker(LEAK_MARKER) is not None


def plan_of(item: pytest.Item, plan: Plan) -> Plan:
    """Return how a test is to be checked; ``plan`` is the run's. Raises :class:`ConfigurationError`."""
    marker = _telling(item)
    return plan if marker is None else adjusted(plan, marker.kwargs, _source(item))


def reason_to_skip(item: pytest.Item) -> str:
    """Return why a test is not to be checked, or an empty text. Raises :class:`ConfigurationError`."""
    marker = _telling(item)
    if marker is None or "skip" not in marker.kwargs:
        return ""
    reason = marker.kwargs["skip"]
    if not isinstance(reason, str) or not reason.strip():
        raise ConfigurationError(f"{_source(item)}: skip is {reason!r}; write the reason as a text")
    if others := ", ".join(sorted(marker.kwargs.keys() - {"skip"})):
        raise ConfigurationError(f"{_source(item)}: a test with skip= is not checked; remove skip= or {others}=")
    return reason


def _telling(item: pytest.Item) -> pytest.Mark | None:
    """Return the marker that has arguments, if there is one.

    The marker on the test wins over one on its class or module. Beside one that says how, one that says nothing more
    than that the test is to be checked, as a ``conftest.py`` adds it to all, changes nothing. Raises
    :class:`ConfigurationError` where it is wrong.
    """
    markers = list(item.iter_markers_with_node(LEAK_MARKER))
    at_one_place = [marker for node, marker in markers if node is markers[0][0]]
    saying = [marker for marker in at_one_place if marker.args or marker.kwargs]
    if not saying:
        return None
    if len(saying) > 1:
        raise ConfigurationError(f"{item.nodeid}: two markers '{LEAK_MARKER}' stand at one place; remove one")
    marker = saying[0]
    if marker.args:
        shown = ", ".join(map(repr, marker.args))
        raise ConfigurationError(
            f"{_source(item)} takes keywords only, not ({shown}); "
            f"write one with a name, such as @pytest.mark.{LEAK_MARKER}(rounds=…); options: {', '.join(MARKER_OPTIONS)}"
        )
    if marker.kwargs.get("rounds") in (0, "0") and marker.kwargs.get("rounds") is not False:
        raise ConfigurationError(
            f"{_source(item)}: rounds is 0; write a whole number from {ROUNDS_MIN} to {ROUNDS_MAX}, "
            f'or skip="…" with the reason to leave the test unchecked'
        )
    return marker


def _source(item: pytest.Item) -> str:
    return f"{item.nodeid}: the marker '{LEAK_MARKER}'"


RUNNERS: Final = ("_pytest", "pluggy", "hypothesis", "xdist", "execnet", "coverage", "memray")
"""What runs tests or measures them; the plugins of pytest come on top."""

DIFFERS: Final = (
    "A leak check runs a test several times, and not all runs of this one ended alike. The test depends on chance, "
    "or on state that an earlier run left, such as a variable of the module or a fixture of a wider scope."
)


LEFT_OUT: Final[pytest.StashKey[str]] = pytest.StashKey()
"""In ``item.stash``: why the test is not checked."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of the check of one test, while that is reported.

    ``first`` is the run that is reported, and ``failure`` says how the first round failed that did. ``others`` are
    findings besides leaks, and ``known`` is what the file of known leaks covers. Of the reported run, ``is_accused``
    says that it failed for a finding, ``differs`` that it failed because rounds did not go alike, and ``open`` has the
    reason if it failed for having no verdict.
    """

    judgement: Judgement
    first: FirstRun
    failure: str
    seconds: float
    others: tuple[Finding, ...] = ()
    known: Applied | None = None
    is_accused: bool = False
    differs: bool = False
    open: str = ""

    def text(self, item: pytest.Item) -> str:
        """Return the text of the failure of a test with a finding."""
        plan = item.stash[LEAK_TEST].plan
        result = leak_result(item, plan, self.judgement, Verdict.FAILED, others=self.others)
        return leak_text(item, result, self.judgement)

    def open_result(self, item: pytest.Item) -> Result:
        """Return the result of a test that fails for having no verdict."""
        plan = item.stash[LEAK_TEST].plan
        finding = no_verdict_finding(item, plan, self.judgement, self.open)
        return leak_result(item, plan, self.judgement, Verdict.INCONCLUSIVE, self.open, (finding,))


class LeakChecks:
    """The hooks. One check runs at a time; while it does, the hooks let its rounds through."""

    def __init__(self, config: pytest.Config, items: Sequence[pytest.Item]) -> None:
        self._checker = LeakChecker(Owners(runner_places(config)), fixture_value)
        self._checker.leave_out(items)
        self._checker.leave_out(each.callspec for each in items if hasattr(each, "callspec"))
        config.stash[CONTEXT_METER] = self._checker.contexts
        self._keeps_errors = bool(config.option.usepdb)
        self._progress_writer = progress_writer(config)
        self._baseline = config.stash.get(BASELINE, None)
        self._is_strict = config.stash[LEAK_SETTINGS].is_strict
        self._kernels = KernelFaults()
        self._in_round = False
        self._checked: Checked | None = None

    def prepare(self, item: pytest.Item, plan: Plan) -> None:
        """Have a test checked."""
        is_asked_for = asks_for_leak_check(item)
        plan = replace(plan, looks_longer=is_asked_for, name="" if is_asked_for else item.nodeid)
        item.stash[LEAK_TEST] = LeakTest(plan, self._checker.meters, is_asked_for=is_asked_for)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Have no check count what the report of another test holds."""
        self._checker.leave_out([report])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Run the rounds and judge them, then let the test repeat how its first run went."""
        __tracebackhide__ = True
        if not self._in_round and LEAK_TEST in item.stash:
            self._checked = None
            self._checked = self._with_known(item, self._check(item))
            if self._checked.first.is_over:
                self._checked.first.stand_in()
        return (yield)

    def _check(self, item: pytest.Item) -> Checked:
        """Run the rounds of a test, and what is measured besides leaks."""
        test = item.stash[LEAK_TEST]
        stop_timeout(item)
        self._kernels.begin()
        started = time.monotonic()
        repeats_failures = test.is_asked_for and not self._keeps_errors
        rounds = TestRounds(item, self._checker.leave_out, repeats_failures=repeats_failures)
        progress = LeakProgress(self._progress_writer, item.nodeid, test.plan.seconds)
        others: tuple[Finding, ...] = ()
        self._in_round = True
        try:
            judgement = self._checker.check(progress.following(rounds.run), test.plan, [test.own])
            if test.plan.peaks and judgement.outcome is Outcome.PASSED and not judgement.inconclusive:
                peaks = self._checker.peaks(rounds.run, test.plan)
                others = peak_findings(item, test.plan, peaks)
                unknown = "" if judgement.growths else peaks.unknown
                judgement = replace(judgement, runs=judgement.runs + 1, inconclusive=unknown)
        except pytest.exit.Exception:
            raise
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            # From here it would keep pytest's own setup from running, and spoil the next test as well.
            why = f"{CHECK_FAILED}: {type(error).__name__}: {error}"
            judgement = Judgement(Outcome.OVER, 0, inconclusive=why)
        finally:
            progress.end()
            self._in_round = False
        if not rounds.first.is_over:
            start_timeout(item)  # the run that is reported is still to come
        seconds = time.monotonic() - started
        if DEVICE_FIXTURE not in getattr(item, "fixturenames", ()):  # which answers for them itself
            others += self._kernels.findings()
        return Checked(judgement, rounds.first, rounds.failure, seconds, others)

    def _with_known(self, item: pytest.Item, checked: Checked) -> Checked:
        """Take out what the file of known leaks covers, if the run has one."""
        if self._baseline is None:
            return checked
        known = self._baseline.apply(item.nodeid, checked.judgement, item.stash[LEAK_TEST].plan)
        return replace(checked, judgement=known.left, known=known)

    def _of(self, item: pytest.Item) -> Checked | None:
        """Return what came of the check of a test whose reported run this is."""
        return self._checked if not self._in_round and LEAK_TEST in item.stash else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Let a test that passes fail for its leak, its peak, its kernels, or for a round that failed."""
        checked = self._of(item)
        result = yield
        if checked is None:
            return result
        judgement = checked.judgement
        if judgement.growths or checked.others:
            self._checked = replace(checked, is_accused=True)
            pytest.fail(checked.text(item), pytrace=False)
        if unread := dict(judgement.absent).get(OWN):
            pytest.fail(f"a gauge of 'leak_check' cannot be read, so it was not judged: {unread}", pytrace=False)
        if judgement.unstable and item.stash[LEAK_TEST].is_asked_for:
            self._checked = replace(checked, differs=True)
            differs = f"{DIFFERS} The first run passed. The first that failed did so in its {checked.failure}"
            pytest.fail(differs, pytrace=False)
        if reason := self._why_open(item, checked):
            self._checked = checked = replace(checked, open=reason)
            pytest.fail(leak_text(item, checked.open_result(item), judgement), pytrace=False)
        return result

    def _why_open(self, item: pytest.Item, checked: Checked) -> str:
        """Return why a test that passes has no verdict, where it must have one; empty otherwise.

        It must have one if it asks for the check, or if the run is strict. A test that is expected to fail passes as
        pytest says: to fail it would hide that.
        """
        if checked.judgement.outcome is Outcome.FAILED or failed_subtests(item) or is_expected_to_fail(item):
            return ""
        is_needed = item.stash[LEAK_TEST].is_asked_for or self._is_strict
        return open_reason(checked.judgement, checked.failure) if is_needed else ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the result on the report of the phase that decides, and the leak on that of a test that fails anyway."""
        report = yield
        checked = self._of(item)
        if checked is None:
            if LEFT_OUT in item.stash and _decides(report):
                attach(left_out_result(item, item.stash[LEFT_OUT]), report)
            return report
        report = checked.first.report(report, None if call.excinfo is None else call.excinfo.value)
        if _decides(report):
            self._decide(item, checked, report)
        return report

    def _decide(self, item: pytest.Item, checked: Checked, report: pytest.TestReport) -> None:
        plan, shown, known = item.stash[LEAK_TEST].plan, checked.judgement, checked.known
        verdict, reason = verdict_of(shown, report, checked.failure, is_accused=bool(checked.others))
        is_open = bool(checked.open) and report.when == "call"
        if is_open:
            verdict, reason = Verdict.INCONCLUSIVE, checked.open
        elif report.passed and failed_subtests(item):
            verdict, reason = Verdict.FAILED, "subtests fail"
        if self._baseline is not None and known is not None:
            setattr(report, BASELINE_ATTRIBUTE, self._baseline.told(item.nodeid, known))
            if known.accepted and verdict is Verdict.PASSED:
                verdict, reason = Verdict.KNOWN_UPSTREAM, f"the leak is known: {'; '.join(known.reasons)}"
                shown = replace(shown, growths=known.accepted)
        result = (
            checked.open_result(item) if is_open else leak_result(item, plan, shown, verdict, reason, checked.others)
        )
        attach(result, report)
        item.user_properties = report.user_properties  # JUnit takes those of the last report, the teardown's
        setattr(report, LEAK_SECONDS_ATTRIBUTE, (checked.seconds, plan.seconds))
        if checked.is_accused:
            _say_in_short(report, leak_in_short(result.findings))
        elif is_open:
            _say_in_short(report, f"no leak verdict: {clean_line(checked.open)}")
        elif checked.judgement.growths or checked.others:
            report.sections.append(("leak check", checked.text(item)))
        says_why = checked.is_accused or checked.differs or is_open
        if report.failed and checked.judgement.unstable and not says_why:
            report.sections.append(("leak check", DIFFERS))
        if verdict is Verdict.INCONCLUSIVE and not is_open:
            warn_of(item, reason)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        """Let go of what the traceback of a failed test holds; a debugger still wants it."""
        __tracebackhide__ = True
        try:
            return (yield)
        finally:
            if (checked := self._of(item)) is not None:
                checked.first.step_back()
                if not self._keeps_errors:
                    _release_last_error()


def _say_in_short(report: pytest.TestReport, said: str) -> None:
    """Have pytest's short summary say this of a failure."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = said


def _decides(report: pytest.TestReport) -> bool:
    """Whether a report is that of the phase that says how the test went."""
    return report.when == "call" or (report.when == "setup" and not report.passed)


def register_leak_checks(session: pytest.Session, items: Sequence[pytest.Item]) -> None:
    """Have tests checked. A test whose marker makes no sense is an error that says what to write."""
    config = session.config
    plan = config.stash[LEAK_SETTINGS].plan()
    checks = LeakChecks(config, items)
    for item in items:
        try:
            if reason := reason_to_skip(item):
                item.stash[LEFT_OUT] = reason
            else:
                checks.prepare(item, plan_of(item, plan))
        except ConfigurationError as error:
            item.stash[MARKER_ERROR] = clean_line(str(error))
    config.pluginmanager.register(checks, "quiesce-leak-checks")
    config.pluginmanager.register(ForkedChildren(), "quiesce-forked-children")
    config.pluginmanager.register(RoundTimeouts(), "quiesce-round-timeouts")


def _release_last_error() -> None:
    error = getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        release_frames(error)
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)


def fixture_value(value: object) -> tuple[str, object]:
    """Return the name of a fixture that pytest keeps, and its value; an empty name for all else."""
    if not isinstance(value, pytest.FixtureDef) or value.cached_result is None:
        return "", None
    return f"fixture '{value.argname}'", value.cached_result[0]


def runner_places(config: pytest.Config) -> Iterator[str]:
    """Yield the folders and files of what runs the tests, whose own memory is no leak of the tested code.

    A library that comes with a plugin for pytest is tested code but for the file of that plugin.
    """
    here = Path(__file__).parent
    yield from (str(here), str(here.with_name("leaks")))
    names = set(RUNNERS)
    for plugin, _ in config.pluginmanager.list_plugin_distinfo():
        name = str(getattr(plugin, "__name__", ""))
        package = name.partition(".")[0]
        if package.startswith("pytest"):
            names.add(package)
        elif package and (file := getattr(plugin, "__file__", None)):
            yield str(file)
    for name in sorted(names):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            yield from spec.submodule_search_locations
        elif spec is not None and spec.origin:
            yield spec.origin
