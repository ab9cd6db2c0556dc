"""One more round of a test: its setup, call and teardown, with fixtures of its own and without a report."""

from __future__ import annotations

import contextlib
import copy
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from quiesce.leaks.judgement import Outcome
from quiesce.pytest_plugin.neighbours import allow_repetition, forget_finished_fixtures, unreported


class TestRounds:
    """Runs the rounds of one test. Fixtures of a wider scope than the test stay between them."""

    __test__ = False

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._next = copy.copy(item)  # the same parents, another item: only what belongs to the test is torn down
        doctest = getattr(item, "dtest", None)
        self._doctest_globals = None if doctest is None else dict(doctest.globs)
        self.failure = ""
        allow_repetition(item)

    def run(self) -> Outcome:
        """Run one round."""
        session = self._item.session
        with unreported(self._item, briefly=bool(self.failure)), self._fresh():
            errors = self._phases()
            outcome = self._outcome(errors)
            for error in errors:
                release_frames(error)
        return Outcome.OVER if session.shouldstop or session.shouldfail else outcome

    def _phases(self) -> list[BaseException]:
        """Return what was raised, in the order of the phases."""
        errors = [self._phase("setup")]
        if errors == [None]:
            errors.append(self._phase("call"))
        errors.append(self._phase("teardown", nextitem=self._next))
        return [error for error in errors if error is not None]

    def _phase(self, when: Literal["setup", "call", "teardown"], **arguments: Any) -> BaseException | None:
        item = self._item
        hook = getattr(item.ihook, f"pytest_runtest_{when}")
        call = pytest.CallInfo.from_call(
            lambda: hook(item=item, **arguments), when, reraise=(pytest.exit.Exception, KeyboardInterrupt)
        )
        # Plugins act on reports: fixtures ask how the call went, unittest's errors are found only here.
        report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
        if call.excinfo is None:
            return None
        if report.failed and not self.failure:
            self.failure = f"{when}: {call.excinfo.exconly(tryshort=True)}\n{report.longreprtext}"
        return call.excinfo.value

    @contextlib.contextmanager
    def _fresh(self) -> Iterator[None]:
        """Begin and end a round as if the test had never run."""
        item: Any = self._item
        if hasattr(item, "_request") and not item._request:
            item._initrequest()
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
        return Outcome.FAILED if errors else Outcome.PASSED


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
