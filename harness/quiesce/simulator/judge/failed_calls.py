"""Calls that failed: which are told, and which leave a run without a verdict because nobody looked at the error.

A program goes on after refused work as if it were done: a kernel did not run, a copy did not happen. What it does with
the answer of a call can't be seen. So an error counts as noticed where the program fetches it (``cudaGetLastError``),
asks for its name or its text, or uses a package that raises an exception for each error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quiesce.model.findings import CallSite, Finding
from quiesce.model.program_rules import ERRORS_NOTICED, REFUSALS_SURVIVED
from quiesce.model.program_run import FailedCall, FailedCalls
from quiesce.model.rules import Kind
from quiesce.model.wording import counted
from quiesce.simulator.judge.call_stacks import made_at
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.runtime import CallStacks, FailureLog, LoggedFailure, error_name

if TYPE_CHECKING:
    from quiesce.simulator.judge.known_errors import KnownError

SHOWN_MAX: Final = 10
_KEPT_MAX: Final = 100
_NAMED_MAX: Final = 3
_OUT_OF_MEMORY: Final = 2
# Patterns are compiled when a call has failed: most programs have none.
_NAME: Final = r"(?:cuda|cu|hip)(.*?)(?:_v\d+|_ptsz|_ptds|_spt)*$"
_WORK: Final = (
    r"Launch|Memcpy|Memset|MemFree|Free|Synchronize|WaitEvent|WaitValue|WriteValue|BatchMemOp|EventRecord"
    r"|GraphInstantiate|GraphAdd|BeginCapture|EndCapture|AddCallback"
)
"""Functions that do work or give memory back, of whose refusal a program must know."""
_ASKS: Final = r"Get|Query|IsCapturing|CanAccess|Occupancy"
"""Functions that only ask. Clients learn from their errors what there is."""
_ANSWERS: Final = frozenset({1, 3, 100, 201, 400, 500, 801})
"""Invalid value, not initialized, no device, no context, invalid handle, not found, not supported."""
_PROBES: Final = (
    (r"EnablePeerAccess", frozenset({704})),
    (r"SetDeviceFlags|PrimaryCtxSetFlags", frozenset({708})),
    (r"CtxPopCurrent|PrimaryCtxRelease|CtxDetach", frozenset({3, 201})),
    (r"GraphExecUpdate", frozenset({910})),
)
"""Other functions whose errors stock clients expect."""
_RAISING: Final = r"(?:^|/)numba/cuda/cudadrv/driver\.py$"
"""Files of packages through which every error becomes an exception, without asking the driver what it means."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The calls of a process that failed: what to tell, and what the program did not notice.

    ``afterwards`` counts calls that failed because a device was unusable, ``lost`` those of which nothing is known.
    ``known`` are the entries of the user's file that were needed.
    """

    told: FailedCalls
    unnoticed: tuple[FailedCall, ...]
    afterwards: int
    lost: int
    known: frozenset[KnownError]

    def lines(self) -> Iterator[str]:
        """Yield what a terminal shows: a line for each of the first, and how many more there are."""
        yield from failed_lines(self.told)
        if self.afterwards:
            yield f"{counted(self.afterwards, 'call')} failed because a device was unusable"

    def unchecked(self) -> str:
        """Return why the run has no verdict, empty where it has one."""
        lost = f"{counted(self.lost, 'failed call')} found no room in the list of failed calls" if self.lost else ""
        if not self.unnoticed:
            return lost
        named = [failed_text(each) for each in self.unnoticed[:_NAMED_MAX]]
        more = len(self.unnoticed) - _NAMED_MAX
        names = ", ".join(named) + (f" and {more:,} more" if more > 0 else "")
        text = (
            f"work was refused, and the program did not look at the error: {names}. Let it check what each call "
            "returns. If it expects the error, use --api-errors tell, or list the call with --known-errors"
        )
        return "; ".join(filter(None, (lost, text)))

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each call whose error nobody looked at."""
        for each in self.unnoticed:
            yield Finding(
                ERRORS_NOTICED,
                "the program looks at the error of refused work",
                f"{failed_text(each)}, {counted(each.unnoticed, 'time')}, and the program did not look at the error",
                operation_index=each.site.number,
                request=each.site.call,
                kind=Kind.SWALLOWED_ERROR,
                call_sites=(each.site,),
                evidence=each.site.sentence if each.site.frames else "",
                seen=each.unnoticed,
            )


NO_FAILURES: Final = Failures(FailedCalls(), (), 0, 0, frozenset())


def failures_of(log: FailureLog, stacks: CallStacks | None, known: Sequence[KnownError] = ()) -> Failures:
    """Return what is to be said of the failures in a log; ``known`` are those that the user accepts."""
    origins = Origins(stacks)
    told = [each for each in log.failures if not each.is_afterwards and not _is_probe(each)]
    # Names of native code take a while to find: only of what is shown.
    told.sort(key=lambda each: (not _is_unnoticed(each, stacks), each.number))
    calls, needed = [], set()
    for each in told[:_KEPT_MAX]:
        site = origins.site_of_call("failed in", each.function, each.number, each.stack)
        entry = next((entry for entry in known if entry.covers(each.function, each.answer, site.frames)), None)
        needed |= {entry} if entry else set()
        unnoticed = each.unnoticed if _is_unnoticed(each, stacks) and entry is None else 0
        calls.append(_call(each, site, unnoticed, entry.reason if entry else ""))
    calls.sort(key=lambda call: (not call.unnoticed, call.site.number))
    return Failures(
        FailedCalls(tuple(calls), len(told)),
        tuple(call for call in calls if call.unnoticed),
        sum(each.count for each in log.failures if each.is_afterwards),
        log.lost,
        frozenset(needed),
    )


def _call(failure: LoggedFailure, site: CallSite, unnoticed: int, known: str) -> FailedCall:
    name = error_name(failure.function, failure.answer)
    return FailedCall(site, failure.answer, name, failure.count, unnoticed, failure.is_injected, known)


def _is_probe(failure: LoggedFailure) -> bool:
    """Say whether a client asked a question and got an answer."""
    name = _bare(failure.function)
    if re.search(_ASKS, name) and failure.answer in _ANSWERS:
        return True
    return any(re.search(function, name) and failure.answer in answers for function, answers in _PROBES)


def _is_unnoticed(failure: LoggedFailure, stacks: CallStacks | None) -> bool:
    """Say whether work was refused and nobody looked at the error. A failure that was asked for is the test itself."""
    if failure.is_injected or not failure.unnoticed or not re.search(_WORK, _bare(failure.function)):
        return False
    stack = stacks.stack(failure.stack) if stacks else None
    return stack is None or not any(re.search(_RAISING, frame.file) for frame in stack.python[:1])


def _bare(function: str) -> str:
    found = re.match(_NAME, function)
    return found[1] if found else function


def failed_text(call: FailedCall) -> str:
    """Return which call failed with which error, and where."""
    return " ".join(filter(None, (str(call), *made_at([call.site.frames]))))


def failed_lines(calls: FailedCalls) -> Iterator[str]:
    """Yield a line for each of the first calls that failed, and how many more there are."""
    for each in calls.kept[:SHOWN_MAX]:
        line = f"failed: {failed_text(each)}, {counted(each.count, 'time')}"
        yield "; ".join(filter(None, (line, each.remark)))
    more = calls.count - min(SHOWN_MAX, len(calls.kept))
    if more:
        yield f"failed: {counted(more, 'other call')}"


# -- programs that do not survive a refusal ----------------------------------------------------------------------------


def last_refusal(log: FailureLog, *, is_small: bool) -> LoggedFailure | None:
    """Return the last call that the run itself let fail; None where there is none.

    ``is_small`` says that the run chose the capacity of the devices, so that lack of memory counts as well.
    """
    refused = [each for each in log.failures if each.is_injected or (is_small and each.answer == _OUT_OF_MEMORY)]
    return max(refused, key=lambda each: each.number, default=None)


def unsurvived(refusal: LoggedFailure, stacks: CallStacks | None, signal: str) -> Finding:
    """Return the finding about a program that a signal ended after a call had been refused."""
    site = Origins(stacks).site_of_call("refused to", refusal.function, refusal.number, refusal.stack)
    call = FailedCall(site, refusal.answer, error_name(refusal.function, refusal.answer), refusal.count, 0)
    return Finding(
        REFUSALS_SURVIVED,
        "a program that goes on, or ends by itself with a message and an exit status, when a call fails",
        f"{signal} ended the program, after {failed_text(call)}",
        operation_index=refusal.number,
        request=refusal.function,
        kind=Kind.CRASH,
        call_sites=(site,),
        evidence=site.sentence if site.frames else "",
    )


def needless(known: Iterable[KnownError], needed: frozenset[KnownError]) -> Iterator[str]:
    """Yield what to say of entries of the user's file that no call needed."""
    for entry in known:
        if entry not in needed:
            yield f"--known-errors: the entry for {entry} is not needed: no such call failed"
