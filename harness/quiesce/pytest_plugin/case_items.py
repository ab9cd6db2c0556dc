"""Case files as pytest's items: one for each case and backend, and the failed result of one whose process died."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from quiesce.allocators.cases import KEYS, identify, parse_case
from quiesce.allocators.execution import run_and_prove
from quiesce.model import wording
from quiesce.model.errors import CaseError, is_own_error, reproduced_by
from quiesce.model.findings import Finding
from quiesce.model.results import LEAK_CHECK, Result, Verdict
from quiesce.model.rules import Kind
from quiesce.pytest_plugin.attaching import attach
from quiesce.pytest_plugin.keys import OWN_ERROR_ATTRIBUTE
from quiesce.pytest_plugin.selection import chosen
from quiesce.reporting import clean_line, failure_text, is_in_protocol, place

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from quiesce.allocators.cases import Case
    from quiesce.model.backend import Backend


NO_BACKEND: Final = "no backend"
"""What reports call the backend of a case file that cannot be read."""

_TOLD: Final = pytest.StashKey[dict[str, str]]()
"""The item, by backend, that told of an error in the wire protocol first."""
_HEADER_LINE: Final = re.compile(rf"^ *({'|'.join(KEYS)})\s*:".encode(), re.MULTILINE)


class CaseFailed(Exception):
    """A case failed or is broken; pytest shows its text instead of a traceback."""


def has_header(path: Path) -> bool:
    """Whether a file named ``*.case`` has a header line, so that it is one of quiesce's and not a stranger's."""
    try:
        return _HEADER_LINE.search(path.read_bytes()) is not None
    except OSError:
        return True  # collecting it says what is wrong


def read_case(path: Path, name: str) -> Case:
    """Read a case; ``name`` is what pytest calls the file, relative to the root folder. Raises :class:`CaseError`."""
    try:
        return replace(parse_case(path), path=name)
    except CaseError as error:
        raise CaseError(name, error.line, error.what, error.instead) from None


class CaseFile(pytest.File):
    """One case file; a malformed one becomes one failing item, so that the other cases still run."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the items of this file, in the order of the chosen backends."""
        try:
            case = read_case(self.path, self.nodeid)
        except CaseError as error:
            yield MalformedCase.from_parent(self, name="malformed", error=error)
            return
        for name, backend in chosen(self.config).backends.items():
            yield CaseItem.from_parent(self, name=name, case=case, backend=backend)


class ResultItem(pytest.Item):
    """An item that makes one result."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.add_marker("leak")
        self.made: Result | None = None
        self.met_own_error = False

    @abstractmethod
    def make(self) -> Result:
        """Make the result."""

    @abstractmethod
    def fail(self, reason: str) -> Result:
        """Return the result where :meth:`make` never returned one."""

    def runtest(self) -> None:
        """Make the result, let the policy hook see it, and say it the way pytest does."""
        self.met_own_error = False
        try:
            result = self.make()
        except Exception as error:
            self.met_own_error = is_own_error(error)
            raise
        adjusted: Result | None = self.ihook.pytest_quiesce_adjust_result(result=result)
        self.made = result = adjusted or result
        if result.verdict.is_failure:
            raise CaseFailed(self._failure(result))
        if result.verdict is not Verdict.PASSED:
            said = f"{result.verdict}: {result.reason}" if result.reason else str(result.verdict)
            pytest.skip(f"{clean_line(said)} (on '{self.name}')")

    def _failure(self, result: Result) -> str:
        """Return the text of a failure; an error of a driver in the wire protocol is told whole the first time."""
        told = self.config.stash.setdefault(_TOLD, {})
        if not is_in_protocol(result) or (first := told.setdefault(result.backend, self.nodeid)) == self.nodeid:
            return failure_text(result)
        shown = clean_line(first.partition("::")[0])
        return f"{place(result)}: the same error of the driver program in the wire protocol as in {shown}"

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say where the item is, and what heads its failure."""
        return self.path, None, f"{identify(self.path)} on {self.name}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a failed case as its own text, anything else as pytest does."""
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


class CaseItem(ResultItem):
    """One case on one backend."""

    def __init__(self, *, case: Case, backend: Backend, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        self.backend = backend

    def make(self) -> Result:
        """Run the case; the result names the backend as the user chose it, and says how pytest runs it again."""
        again = reproduce(self.case.path, self.name)
        with reproduced_by(again):
            result = run_and_prove(self.case, self.backend)
        return replace(result, backend=self.name, reproduce=again)

    def fail(self, reason: str) -> Result:
        """Return a failed result of this case."""
        return failed_result(self.case, self.name, reason)


class MalformedCase(ResultItem):
    """A case file that cannot be read: a broken case on no backend."""

    def __init__(self, *, error: CaseError, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.error = error

    def make(self) -> Result:
        """Say what is wrong with the file."""
        return self.fail(f"{self.error.what}; {self.error.instead}")

    def fail(self, reason: str) -> Result:
        """Return a broken case."""
        name = self.nodeid.partition("::")[0]
        return Result(identify(self.path), "", name, NO_BACKEND, Verdict.BROKEN_CASE, reason)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show ``file:line: what is wrong; what to write instead``."""
        return (
            clean_line(str(self.error))
            if isinstance(excinfo.value, CaseFailed)
            else super().repr_failure(excinfo, style)
        )


def reproduce(path: str, backend: str) -> str:
    """Return the command that runs one case again, for a POSIX shell; the path is quoted in any case."""
    return f"{wording.pytest_command(path)} --quiesce-backend={wording.quote(backend)}"


def failed_result(case: Case, backend: str, reason: str) -> Result:
    """Return the result of a case whose run broke off without one."""
    return Result(
        case.identifier,
        case.title,
        case.path,
        backend,
        Verdict.FAILED,
        reason,
        upstream=case.upstream,
        reproduce=reproduce(case.path, backend),
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the result on the report; an item that broke off without a result gets a failed one.

    Where the error is in quiesce itself, nothing is known of the backend: then it is inconclusive.
    """
    report = yield
    if not isinstance(item, ResultItem) or report.when == "teardown":
        return report
    result, item.made = item.made, None
    if result is None and report.failed and call.excinfo is not None:
        said = call.excinfo.exconly(tryshort=True).partition("\n")[0]
        result = item.fail(f"its {report.when} broke off: {said}")
        if item.met_own_error:
            setattr(report, OWN_ERROR_ATTRIBUTE, True)
            reason = f"an error in quiesce itself: {said}"
            result = replace(result, verdict=Verdict.INCONCLUSIVE, reason=reason, must_conclude=True)
    if result is not None:
        attach(result, report)
        item.user_properties = report.user_properties  # JUnit takes those of the last report, the teardown's
    if report.skipped and isinstance(report.longrepr, tuple):  # pytest names the line of this file that skips
        report.longrepr = (str(item.path), 1, report.longrepr[2])
    return report


SURVIVES: Final = "process_survives_every_request"
"""The rule that is broken where the process that runs a case or a test dies."""


def crashed_case(nodeid: str, observed: str, config: pytest.Config) -> Result:
    """Return the result of a case item whose worker process died while it ran."""
    name, _, backend = nodeid.partition("::")
    path = config.rootpath / name
    finding = Finding(SURVIVES, "the process lives until the case has run", observed, kind=Kind.CRASH)
    try:
        result = failed_result(read_case(path, name), backend, "")
    except CaseError:
        result = Result(identify(path), "", name, backend, Verdict.FAILED, reproduce=reproduce(name, backend))
    return replace(result, findings=(finding,))


def crashed_test(nodeid: str, name: str, line: int | None, observed: str) -> Result:
    """Return the result of a test that was being checked for leaks when its worker process died.

    ``line`` counts from 0, as pytest does.
    """
    expected = "the process lives until every round of the test has run"
    at = None if line is None else line + 1
    return Result(
        case=nodeid,
        title=f"{name} is checked for leaks",
        path=nodeid.partition("::")[0],
        backend=LEAK_CHECK,
        verdict=Verdict.FAILED,
        findings=(Finding(SURVIVES, expected, observed, line=at, kind=Kind.CRASH),),
        reproduce=wording.pytest_command(nodeid),
    )
