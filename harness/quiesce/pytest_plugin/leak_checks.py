"""The leak checks of ordinary tests. Registered only in a run that has a test to check.

A test's rounds are run before its setup, and judged. Then the test runs once more the way it always does, and that run
is reported: it fails the way it fails, and if it passes although it leaks, it is the call that fails. So whatever
looks at reports or repeats failures sees an ordinary test.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from quiesce.errors import ConfigurationError
from quiesce.findings import Finding
from quiesce.leaks.check import LeakCheck
from quiesce.leaks.contexts import ContextMeter
from quiesce.leaks.cupy_pools import CupyMeter
from quiesce.leaks.descriptors import DescriptorMeter
from quiesce.leaks.driver_memory import DriverMemoryMeter
from quiesce.leaks.judgement import Judgement, Outcome
from quiesce.leaks.ledger_gauges import ledger_meters, own_machine
from quiesce.leaks.memory import HeapMeter, PythonMeter
from quiesce.leaks.own import OWN
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import CONTEXTS, Meter
from quiesce.leaks.threads import ThreadMeter
from quiesce.pytest_plugin.attaching import attach
from quiesce.pytest_plugin.kernel_faults import KernelFaults
from quiesce.pytest_plugin.keys import CONTEXT_METER, DEVICE_FIXTURE, LEAK_SETTINGS, LEAK_TEST
from quiesce.pytest_plugin.leak_plans import plan_of
from quiesce.pytest_plugin.leak_results import leak_result, leak_text, verdict_of
from quiesce.pytest_plugin.leak_rounds import TestRounds, release_frames
from quiesce.pytest_plugin.leak_tests import LeakTest
from quiesce.pytest_plugin.refusing import refuse
from quiesce.reporting.text import clean_line
from quiesce.results import Verdict

RUNNERS: Final = ("_pytest", "pluggy", "hypothesis", "xdist", "execnet", "coverage", "memray")
"""What runs tests or measures them; the plugins of pytest come on top."""

DIFFERS: Final = (
    "A leak check runs a test several times, and not all runs of this one ended alike. The test depends on chance, "
    "or on state that an earlier run left, such as a variable of the module or a fixture of a wider scope."
)


class LeakChecks:
    """The hooks. One check runs at a time; while it does, the hooks let its rounds through."""

    def __init__(self, config: pytest.Config) -> None:
        owners = Owners(runner_places(config))
        self._owners = owners
        self._contexts = config.stash[CONTEXT_METER] = ContextMeter(owners)
        machine, cupy = own_machine(), CupyMeter()
        self._meters: tuple[Meter, ...] = (
            self._contexts,
            cupy,
            *((DriverMemoryMeter(),) if machine is None else ledger_meters(machine, cupy.settle)),
            ThreadMeter(),
            DescriptorMeter(),
            PythonMeter(),
            HeapMeter() if machine is None else HeapMeter(machine.heap_bytes),
        )
        self._keeps_errors = bool(config.option.usepdb)
        self._in_round = False
        self._in_call = False
        self._accused = False
        self._differs = False
        self._judgement: Judgement | None = None
        self._failure = ""
        self._kernels = KernelFaults()
        self._faults: tuple[Finding, ...] = ()

    def check(self, item: pytest.Item, plan: Plan) -> None:
        """Have a test checked."""
        item.stash[LEAK_TEST] = LeakTest(plan, self._meters)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Run the rounds and judge them, then let the test run."""
        if not self._in_round and LEAK_TEST in item.stash:
            self._judgement = None
            self._accused = self._differs = False
            self._faults = ()
            self._kernels.begin()
            self._judgement = self._check(item)
        return (yield)

    def _check(self, item: pytest.Item) -> Judgement:
        test = item.stash[LEAK_TEST]
        rounds = TestRounds(item)
        self._in_round = True
        try:
            judgement = LeakCheck(rounds.run, test.meters, test.plan, self._owners).judge()
            if any(growth.quantity.family == CONTEXTS for growth in judgement.growths):
                self._contexts.close_new()
        except pytest.exit.Exception:
            raise
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            # From here it would keep pytest's own setup from running, and spoil the next test as well.
            why = f"the leak check itself failed: {type(error).__name__}: {error}"
            judgement = Judgement(Outcome.OVER, 0, inconclusive=why)
        finally:
            self._in_round = False
        self._failure = rounds.failure
        return judgement

    def _judged(self, item: pytest.Item) -> Judgement | None:
        """Return the judgement of a test whose reported run this is."""
        return self._judgement if not self._in_round and LEAK_TEST in item.stash else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Let a test that passes fail for its leak, for its kernels, or for a round that failed."""
        judgement = self._judged(item)
        if judgement is None:
            return (yield)
        self._in_call = True
        try:
            result = yield
        finally:
            self._in_call = False
            if DEVICE_FIXTURE not in getattr(item, "fixturenames", ()):  # which answers for them itself
                self._faults = self._kernels.findings()
        if judgement.growths or self._faults:
            self._accused = True
            pytest.fail(self._text(item, judgement), pytrace=False)
        if unread := dict(judgement.absent).get(OWN):
            pytest.fail(f"a gauge of 'leak_check' cannot be read, so it was not judged: {unread}", pytrace=False)
        if self._failure and (judgement.unstable or not self._failure.startswith("teardown")):
            self._differs = True
            differs = f"{DIFFERS} The last run passed. The first that failed did so in its {self._failure}"
            pytest.fail(differs, pytrace=False)
        return result

    def _text(self, item: pytest.Item, judgement: Judgement) -> str:
        plan = item.stash[LEAK_TEST].plan
        return leak_text(item, leak_result(item, plan, judgement, Verdict.FAILED, faults=self._faults), judgement)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the result on the report of the phase that decides, and the leak on that of a test that fails anyway."""
        report = yield
        judgement = self._judged(item)
        decides = report.when == "call" or (report.when == "setup" and not report.passed)
        if judgement is None or self._in_call or not decides:  # subtests report within the call
            return report
        verdict, reason = verdict_of(judgement, report, is_faulty=bool(self._faults))
        attach(leak_result(item, item.stash[LEAK_TEST].plan, judgement, verdict, reason, self._faults), report)
        item.user_properties = report.user_properties  # JUnit takes those of the last report, the teardown's
        if (judgement.growths or self._faults) and not self._accused:
            report.sections.append(("leak check", self._text(item, judgement)))
        if (
            report.failed
            and not (self._accused or self._differs)
            and (judgement.unstable or judgement.outcome is Outcome.PASSED)
        ):
            report.sections.append(("leak check", DIFFERS))
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        """Let go of what the traceback of a failed test holds; a debugger still wants it."""
        try:
            return (yield)
        finally:
            if self._judged(item) is not None and not self._keeps_errors:
                _release_last_error()


def register_leak_checks(session: pytest.Session, items: Sequence[pytest.Item]) -> None:
    """Have tests checked. Raises :class:`pytest.UsageError` with one line for a marker that makes no sense."""
    config = session.config
    plan = config.stash[LEAK_SETTINGS].plan()
    checks = LeakChecks(config)
    for item in items:
        try:
            checks.check(item, plan_of(item, plan))
        except ConfigurationError as error:
            refuse(session, clean_line(str(error)))
    config.pluginmanager.register(checks, "quiesce-leak-checks")


def _release_last_error() -> None:
    error = getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        release_frames(error)
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)


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
