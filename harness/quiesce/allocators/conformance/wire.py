"""Questions to a driver program that no operation can put: what the wire protocol says of lines, and of their end.

A driver that dies, hangs or talks nonsense meanwhile raises its :class:`~quiesce.model.backend.BackendFault`, as
anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from quiesce.allocators.conformance.checks import ContractCheck, NotExercised
from quiesce.allocators.lockstep import contract_finding, finding_of
from quiesce.backends.command import AGAIN, CLOSE, LINE_BYTES_MAX, CommandBackend, CommandContext, shorten
from quiesce.model.backend import Backend, BackendFault, Capability, DeviceProfile
from quiesce.model.findings import Finding
from quiesce.model.outcomes import Allocated, Done, Outcome, Rejected, Unsupported, describe
from quiesce.model.rules import ENDS_WITH_INPUT, LONGEST_LINE, MISUSE_REFUSED, QUITS, SURVIVES, UNKNOWN_REFUSED

Question: TypeAlias = Callable[[CommandBackend], Iterator[Finding]]

UNKNOWN: Final = "frobnicate"
_SERVED: Final = (Allocated, Done)
_MAKING: Final = (
    (Capability.MEMORY, "a = allocate 64", "free a"),
    (Capability.POOLS, "p = create pool", "destroy pool p"),
    (Capability.STREAMS, "s = create stream", "destroy stream s"),
    (Capability.EVENTS, "e = create event", "destroy event e"),
    (Capability.INSTANCES, "x = create instance", "destroy instance x"),
    (Capability.TAPE, "n = node", "drop n"),
)
"""What makes something under a slot, and what gives it back."""
_ALONE: Final = (
    (Capability.POOL, "trim"),
    (Capability.LAUNCH, "launch"),
    (Capability.STREAMS, "synchronize device"),
    (Capability.LIFECYCLE, "initialize"),
    (Capability.TAPE, "collect"),
    (Capability.INJECTION, "fail backing 1"),
)


def unknown_requests_are_unsupported(driver: CommandBackend) -> Iterator[Finding]:
    """Send a request that nobody knows, and known ones with a word and with an option that nobody knows."""
    can = driver.describe().capabilities
    lines = [UNKNOWN, f"a = {UNKNOWN} 64"]
    known = [line for capability, line in _ALONE if capability in can]
    for capability, make, end in _MAKING:
        known += [make, end] if capability in can else []
    lines += [f"{line} {word}" for line in known for word in (UNKNOWN, f"{UNKNOWN}=1")]
    with _opened(driver) as context:
        if Capability.LIFECYCLE in can:
            context.ask("initialize")
        for line in lines:
            made = next((make for _, make, end in _MAKING if line.startswith(f"{end} ")), None)
            if made is not None:
                context.ask(made)
            outcome = context.ask(line).outcome
            if not isinstance(outcome, Unsupported):
                yield contract_finding(UNKNOWN_REFUSED, _MATCH_LINES, _said(line, outcome))
                return
            if made is not None:
                context.ask(line.rpartition(" ")[0])


_MATCH_LINES: Final = "unsupported: match whole lines, and take nothing from one that holds a word you do not know"


def misused_slots_are_refused(driver: CommandBackend) -> Iterator[Finding]:
    """Give back what was never made, make it twice, and give it back twice."""
    can = driver.describe().capabilities
    asked = False
    with _opened(driver) as context:
        for capability, make, end in _MAKING:
            if capability not in can:
                continue
            for line, misuse in ((end, _NEVER), (make, ""), (make, _TAKEN), (end, ""), (end, _GONE)):
                outcome = context.ask(line).outcome
                asked = asked or bool(misuse)
                if misuse and not isinstance(outcome, Rejected):
                    yield contract_finding(MISUSE_REFUSED, f"rejected: {misuse}", _said(line, outcome))
                    return
                if not misuse and not isinstance(outcome, _SERVED):
                    break  # why it is not served is asked elsewhere
    if not asked:
        raise NotExercised(_NOTHING_MADE)


_NOTHING_MADE: Final = "it claims nothing that is made under a slot"
_NEVER: Final = "nothing was made under that slot"
_TAKEN: Final = "something is there under that slot"
_GONE: Final = "it was given back before"


def the_longest_line_is_one(driver: CommandBackend) -> Iterator[Finding]:
    """Send a request as long as a line may be, and another, whose answer shows whether the first was several."""
    line, expected = (
        UNKNOWN.ljust(LINE_BYTES_MAX - 1, "x"),
        f"one answer to {LINE_BYTES_MAX:,} bytes, line feed included",
    )
    can = driver.describe().capabilities
    claimed = [(make, end) for capability, make, end in _MAKING if capability in can]
    if not claimed:
        raise NotExercised(_NOTHING_MADE)
    ((make, end), *_) = claimed
    with _opened(driver) as context:
        before = context.ask(make).outcome
        context.ask(end)
        try:
            context.ask(line)
            after = context.ask(make).outcome
        except BackendFault as fault:
            yield contract_finding(LONGEST_LINE, expected, fault.observed)
            return
        if type(after) is not type(before):
            yield contract_finding(
                LONGEST_LINE, expected, f"{_said(make, after)}, which is the answer to the rest of that line"
            )


def the_end_of_the_input_is_the_end(driver: CommandBackend) -> Iterator[Finding]:
    """Leave an opened driver, with something in it, without a word."""
    can = driver.describe().capabilities
    with _opened(driver) as context:
        for capability, make, _ in _MAKING:
            if capability in can:
                context.ask(make)
        try:
            context.program.leave()
        except BackendFault as fault:
            if fault.rule != ENDS_WITH_INPUT:
                raise
            yield finding_of(fault)


def quitting_is_possible_after_again(driver: CommandBackend) -> Iterator[Finding]:
    """Tell a driver that serves again to quit, where the next request could be ``open``."""
    if not driver.serves_again:
        raise NotExercised("lacks again")  # which is optional
    with _opened(driver) as context:
        for line in (CLOSE, AGAIN):
            outcome = context.ask(line).outcome
            if not isinstance(outcome, Done):
                yield contract_finding(QUITS, "done", _said(line, outcome))
                return
        try:
            context.program.finish()
        except BackendFault as fault:
            if fault.rule != SURVIVES:
                raise
            yield contract_finding(QUITS, "exit code 0 after 'again' and 'quit'", fault.observed)


@contextmanager
def _opened(driver: CommandBackend) -> Iterator[CommandContext]:
    context = driver.open(DeviceProfile())
    try:
        yield context
    finally:
        context.program.end()


def _said(line: str, outcome: Outcome) -> str:
    return f"'{shorten(line)}' was answered with {describe(outcome)}"


def _of_drivers(rule: str, question: Question) -> ContractCheck:
    def ask(backend: Backend) -> Iterator[Finding]:
        assert isinstance(backend, CommandBackend)
        return question(backend)

    return ContractCheck(rule, ask)


QUESTIONS: Final = (
    _of_drivers(UNKNOWN_REFUSED, unknown_requests_are_unsupported),
    _of_drivers(MISUSE_REFUSED, misused_slots_are_refused),
    _of_drivers(LONGEST_LINE, the_longest_line_is_one),
    _of_drivers(ENDS_WITH_INPUT, the_end_of_the_input_is_the_end),
    _of_drivers(QUITS, quitting_is_possible_after_again),
)
"""In the order in which they are put."""


def questions_to(backend: Backend) -> tuple[ContractCheck, ...]:
    """Return what is asked of a backend beyond the contract of all: of a driver program, the wire protocol."""
    return QUESTIONS if isinstance(backend, CommandBackend) else ()
