"""Rounds of a test: its setup, call and teardown, with fixtures of its own. Only the first one is reported.

The first run is an ordinary one. Its reports are kept while the rounds go on. Then pytest sets the test up, calls it
and tears it down as always, but the test does nothing more than to raise what its first run raised, and the reports are
those of the first run. So a test that can't run twice still ends as it would without a check.

A child process of ``os.fork`` that comes back from a checked test would run its rounds and other tests, so it is ended.
One that ends itself, as ``os._exit`` and multiprocessing do, does not come that far.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from quiesce.leaks import Outcome, SystemCalls
from quiesce.model.findings import Finding
from quiesce.pytest_plugin.keys import LEAK_TEST
from quiesce.pytest_plugin.neighbours import (
    allow_repetition,
    failed_subtests,
    forget_finished_fixtures,
    kept_for_the_report,
    renew_table_of_nodes,
    repeatable,
    timed,
    unreported,
)
from quiesce.simulator.runtime import SETTINGS_VARIABLE, own_ledger, read_accesses

_PHASES: Final = {"setup": "setup", "call": "runtest", "teardown": "teardown"}
"""The method of an item that pytest calls in each phase."""

_HOOKS: Final = {when: f"pytest_runtest_{when}" for when in _PHASES}
"""The hook of each phase. Made once: CPython's table of looked-up attributes (``Objects/typeobject.c``) would keep each
name that is made anew, up to 4,096 of them."""


class FirstRun:
    """Keeps what each phase of the first run came to."""

    def __init__(self, item: pytest.Item) -> None:
        self._item: Any = item
        self._reports: dict[str, pytest.TestReport] = {}
        self._errors: dict[str, BaseException | None] = {}

    def keep(self, report: pytest.TestReport, error: BaseException | None) -> None:
        """Keep the report of a phase and the error that ended it."""
        self._reports[report.when] = report
        self._errors[report.when] = error

    @property
    def is_over(self) -> bool:
        """Whether the run came to its end."""
        return "teardown" in self._reports

    def stand_in(self) -> None:
        """Have the test repeat from now on what its first run raised, and nothing else."""
        for when, method in _PHASES.items():
            setattr(self._item, method, self._telling(when))

    def step_back(self) -> None:
        """Have the test run again; idempotent."""
        for method in _PHASES.values():
            vars(self._item).pop(method, None)

    def _telling(self, when: str) -> Callable[[], None]:
        def tell() -> None:
            error = self._errors.get(when)
            if error is not None:
                raise error

        return tell

    def report(self, report: pytest.TestReport, error: BaseException | None) -> pytest.TestReport:
        """Return the first run's report in place of one about the same; else give that one the first run's output."""
        first = self._reports.get(report.when)
        if first is None:
            return report
        first.user_properties += [each for each in report.user_properties if each not in first.user_properties]
        if error is self._errors.get(report.when):
            return first
        report.sections[:0] = first.sections
        report.duration, report.start, report.stop = first.duration, first.start, first.stop
        return report


class TestRounds:
    """Runs the rounds of one test. Fixtures of a wider scope than the test stay between them.

    ``leave_out`` is told of the reports, whose lists are none of the test's, before it could find them.
    ``repeats_failures`` says that a test is repeated, too, whose first run fails.
    """

    __test__ = False

    def __init__(
        self, item: pytest.Item, leave_out: Callable[[Iterable[object]], None], *, repeats_failures: bool
    ) -> None:
        self._item = item
        self._leave_out = leave_out
        self._repeats_failures = repeats_failures
        self._next = copy.copy(item)  # the same parents, another item: only what belongs to the test is torn down
        doctest = getattr(item, "dtest", None)
        self._doctest_globals = None if doctest is None else dict(doctest.globs)
        self.first = FirstRun(item)
        self.failure = ""
        allow_repetition(item)

    def run(self) -> Outcome:
        """Run one round."""
        session = self._item.session
        is_first = not self.first.is_over
        if is_first:
            with kept_for_the_report(self._item), timed(self._item, is_repeated=False), self._fresh():
                outcome = self._outcome(self._phases(self.first))
            if outcome is Outcome.FAILED and not self._repeats_failures:
                return Outcome.OVER
        else:
            unseen = unreported(self._item, briefly=bool(self.failure))
            with unseen, timed(self._item, is_repeated=True), repeatable(self._item), self._fresh():
                outcome = self._outcome(self._phases())
        return Outcome.OVER if session.shouldstop or session.shouldfail else outcome

    def _phases(self, first: FirstRun | None = None) -> list[BaseException]:
        """Return what was raised, in the order of the phases."""
        errors = [self._phase("setup", first)]
        if errors == [None]:
            errors.append(self._phase("call", first))
        errors.append(self._phase("teardown", first, nextitem=self._next))
        return [error for error in errors if error is not None]

    def _phase(
        self, when: Literal["setup", "call", "teardown"], first: FirstRun | None, **arguments: Any
    ) -> BaseException | None:
        item = self._item
        hook = getattr(item.ihook, _HOOKS[when])

        def run_phase() -> None:
            __tracebackhide__ = True
            hook(item=item, **arguments)

        call = pytest.CallInfo.from_call(run_phase, when, reraise=(pytest.exit.Exception, KeyboardInterrupt))
        # Plugins act on reports: fixtures ask how the call went, unittest's errors are found only here.
        report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
        error = None if call.excinfo is None else call.excinfo.value
        if first is not None:
            first.keep(report, error)
            self._leave_out([report])
        if call.excinfo is not None and report.failed and not self.failure:
            self.failure = f"{when}: {call.excinfo.exconly(tryshort=True)}\n{report.longreprtext}"
        return error

    @contextlib.contextmanager
    def _fresh(self) -> Iterator[None]:
        """Begin and end a round as if the test had never run."""
        item: Any = self._item
        renew_table_of_nodes(item.session)
        if hasattr(item, "_request"):
            item._initrequest()  # the one from before may be left out of collections, and would stay once it is used
        try:
            yield
        finally:
            if hasattr(item, "_request"):
                forget_finished_fixtures(item._request)
                item._initrequest()
            if item.__dict__.pop("_instance", None) is not None:
                item._obj = None  # a method of the instance that is gone
            if self._doctest_globals is not None:
                item.dtest.globs.clear()
                item.dtest.globs.update(self._doctest_globals)

    def _outcome(self, errors: list[BaseException]) -> Outcome:
        if any(_is_skip(error) for error in errors):
            return Outcome.OVER
        if not errors and not failed_subtests(self._item):
            return Outcome.PASSED
        if self._repeats_failures:  # else the debugger and the report of the one failure want them
            for error in errors:
                release_frames(error)
        return Outcome.FAILED


def _is_skip(error: BaseException) -> bool:
    unittest = sys.modules.get("unittest")
    return isinstance(error, pytest.skip.Exception) or (unittest is not None and isinstance(error, unittest.SkipTest))


def release_frames(error: BaseException) -> None:
    """Let go of what an error's frames hold, and of the errors it came from: a traceback keeps every local variable."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        traceback.clear_frames(each.__traceback__)
        pending += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            pending += each.exceptions


FAILED_STATUS: Final = 1
"""How a program ends that an exception ends."""


class ForkedChildren:
    """The hooks around what a test does in each phase, inside of those of other plugins."""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """End children that come back from fixtures."""
        __tracebackhide__ = True
        return (yield from _ending_children(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """End children that come back from the test."""
        __tracebackhide__ = True
        return (yield from _ending_children(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """End children that come back from the end of fixtures."""
        __tracebackhide__ = True
        return (yield from _ending_children(item))


def _ending_children(item: pytest.Item) -> Generator[None, object, object]:
    __tracebackhide__ = True
    process = SystemCalls.process_id()
    try:
        result = yield
    except BaseException as error:
        if LEAK_TEST in item.stash and SystemCalls.process_id() != process:
            _end(error)
        raise
    if LEAK_TEST in item.stash and SystemCalls.process_id() != process:
        _end(None)
    return result


def _end(error: BaseException | None) -> None:
    """End this process as a program that consists of the test alone would end."""
    status = 0
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        status = FAILED_STATUS
        traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


class KernelFaults:
    """Says which accesses were wrong since a moment. Without a wrong access this reads no ledger."""

    def __init__(self) -> None:
        text = os.environ.get(SETTINGS_VARIABLE, "")
        settings = dict(word.partition("=")[::2] for word in text.split(";"))
        self._folder = Path(settings["folder"]) if settings.get("checks") == "1" else None
        self._told: list[int] = []

    def begin(self) -> None:
        """Begin at this moment."""
        self._told = self._counts()

    def findings(self) -> tuple[Finding, ...]:
        """Return the accesses that were wrong since the beginning."""
        if self._folder is None or self._counts() == self._told:
            return ()
        from quiesce.simulator.judge import RemoteWatch  # all of the oracle: long to load, rarely needed

        watch = RemoteWatch(own_ledger(self._folder))
        try:
            return watch.wrong_accesses(self._told).findings
        finally:
            watch.close()

    def _counts(self) -> list[int]:
        if self._folder is None or not any(self._folder.glob(f"{os.getpid()}*.accesses")):
            return []
        return [access.count for access in read_accesses(own_ledger(self._folder))]
