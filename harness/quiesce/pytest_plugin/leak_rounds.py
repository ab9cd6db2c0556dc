"""Rounds of a test: its setup, call and teardown, with fixtures of its own. Only the first one is reported."""

from __future__ import annotations

import contextlib
import copy
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from quiesce.leaks.judgement import Outcome
from quiesce.pytest_plugin.first_run import FirstRun
from quiesce.pytest_plugin.neighbours import (
    allow_repetition,
    failed_subtests,
    forget_finished_fixtures,
    kept_for_the_report,
    renew_table_of_nodes,
    repeatable,
    unreported,
)


class TestRounds:
    """Runs the rounds of one test. Fixtures of a wider scope than the test stay between them.

    ``repeats_failures`` says that a test is repeated, too, whose first run fails.
    """

    __test__ = False

    def __init__(self, item: pytest.Item, *, repeats_failures: bool) -> None:
        self._item = item
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
            with kept_for_the_report(self._item), self._fresh():
                outcome = self._outcome(self._phases(self.first))
            if outcome is Outcome.FAILED and not self._repeats_failures:
                return Outcome.OVER
        else:
            with unreported(self._item, briefly=bool(self.failure)), repeatable(self._item), self._fresh():
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
        hook = getattr(item.ihook, f"pytest_runtest_{when}")

        def run_phase() -> None:
            __tracebackhide__ = True
            hook(item=item, **arguments)

        call = pytest.CallInfo.from_call(run_phase, when, reraise=(pytest.exit.Exception, KeyboardInterrupt))
        # Plugins act on reports: fixtures ask how the call went, unittest's errors are found only here.
        report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
        error = None if call.excinfo is None else call.excinfo.value
        if first is not None:
            first.keep(report, error)
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
