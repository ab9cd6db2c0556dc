"""Answers: every call into somebody else's backend, so that whatever comes back is an answer or a finding.

A backend under test may raise anything and return anything. Both become a :class:`BackendFault`, which lockstep turns
into a finding; only :class:`BackendUnavailable`, where the contract allows it, and what ends the whole run
(``KeyboardInterrupt``) pass through. Readings are copied, so that a backend cannot change them afterwards.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Final, NoReturn, TypeVar, get_args, get_type_hints

from quiesce.model.backend import (
    Backend,
    BackendFault,
    Capability,
    Closing,
    Context,
    Description,
    DeviceProfile,
    Foreseeing,
    Promise,
    Reply,
)
from quiesce.model.errors import BackendUnavailable
from quiesce.model.findings import FailedCall
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import Observation
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Outcome
from quiesce.model.rules import RAISED

EVIDENCE_LINES_MAX: Final = 8
_METHODS: Final = ("perform", "readings", "close")
EVIDENCE_LINE_CHARACTERS_MAX: Final = 400

_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")  # where an object lies differs from run to run
_Answer = TypeVar("_Answer")
_Hints = tuple[tuple[str, Any], ...]  # Any: what isinstance takes, a class or a union of classes


def _hints(types: Iterable[type[object]]) -> Mapping[type[object], _Hints]:
    return {value: tuple(get_type_hints(value).items()) for value in types}


_OUTCOMES: Final = _hints(get_args(Outcome))
_OBSERVATIONS: Final = _hints(get_args(Observation))
_INTEGERS: Final = frozenset({int})
"""What readings nearly always are: looked at after every operation, so all at once."""
_READING_KEYS: Final = frozenset((gauge, source) for gauge in Gauge for source in Source)


def describe_backend(backend: Backend) -> Description:
    """Return what a backend says about itself. Raises :class:`BackendUnavailable` and :class:`BackendFault`."""
    description = _ask(backend.describe, "describe()", may_be_unavailable=True)
    check_description(description)
    return description


def check_description(description: object) -> None:
    """Raise :class:`BackendFault` for what ``describe()`` may not return."""
    _ask(lambda: _check_description(description), "describe()")


def open_context(backend: Backend, profile: DeviceProfile) -> AnsweringContext:
    """Open a context. Raises :class:`BackendUnavailable` and :class:`BackendFault`."""
    context = _ask(lambda: backend.open(profile), "open()", may_be_unavailable=True)
    if not isinstance(context, Context):
        lacking = [name for name in _METHODS if not hasattr(context, name)]
        _refuse("open()", f"a context: it lacks {' and '.join(lacking)}", context)
    return AnsweringContext(context)


class AnsweringContext:
    """A context whose every answer is checked; methods raise :class:`BackendFault` and nothing else."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._keys: tuple[object, ...] = ()
        self._foreseeing = context if isinstance(context, Foreseeing) and context.foresees is True else None

    @property
    def foresees(self) -> bool:
        """Whether the context has a use for :meth:`foresee`."""
        return self._foreseeing is not None

    def foresee(self, operations: Iterable[Operation]) -> None:
        """Tell the context what is performed next."""
        foreseeing = self._foreseeing
        if foreseeing is not None:
            _ask(lambda: foreseeing.foresee(operations), "foresee()")

    def perform(self, operation: Operation) -> Reply:
        """Perform one operation."""
        try:
            reply = self._context.perform(operation)
        except BackendFault:
            raise
        except (Exception, SystemExit) as error:
            raise _fault_of(error, "perform()") from error
        if type(reply) is not Reply:
            _refuse("perform()", "a Reply", reply)
        _check_fields("perform()", reply.outcome, _OUTCOMES, "an outcome")
        _check_observations("perform()", reply.observations)
        return reply

    def readings(self) -> Readings:
        """Read every gauge."""
        try:
            answer = self._context.readings()
            readings = dict(answer) if type(answer) is dict or isinstance(answer, Mapping) else None
        except BackendFault:
            raise
        except (Exception, SystemExit) as error:
            raise _fault_of(error, "readings()") from error
        if readings is None:
            _refuse("readings()", "a mapping", answer)
        return self._check_readings("readings()", readings)

    def close(self) -> Closing:
        """Release everything."""
        closing = _ask(self._context.close, "close()")
        if type(closing) is not Closing:
            _refuse("close()", "a Closing", closing)
        _check_observations("close()", closing.observations)
        readings = _ask(lambda: dict(closing.readings), "close()")
        return Closing(closing.observations, self._check_readings("close()", readings))

    def _check_readings(self, call: str, readings: Readings) -> Readings:
        keys = tuple(readings)
        if keys != self._keys:  # they hardly ever change
            for key in keys:
                if key not in _READING_KEYS:
                    _refuse(call, "pairs of a gauge and a source", key)
            self._keys = keys
        if not _INTEGERS.issuperset(map(type, readings.values())):
            for value in readings.values():
                if not isinstance(value, int):
                    _refuse(call, "integers", value)
        return readings


def _ask(call: Callable[[], _Answer], name: str, *, may_be_unavailable: bool = False) -> _Answer:
    try:
        return call()
    except BackendFault:
        raise
    except (Exception, SystemExit) as error:
        if may_be_unavailable and isinstance(error, BackendUnavailable):
            raise
        raise _fault_of(error, name) from error


def _fault_of(error: Exception | SystemExit, name: str) -> BackendFault:
    lines = traceback.format_exception(error)
    said = _shortened(traceback.format_exception_only(error)[-1])
    call = FailedCall(name, type(error).__name__)
    return BackendFault(RAISED, f"{name} raised {said}", _last_lines(lines), call)


def _last_lines(parts: list[str]) -> str:
    lines = "".join(parts[-EVIDENCE_LINES_MAX:]).splitlines()
    return "\n".join(_shortened(line) for line in lines[-EVIDENCE_LINES_MAX:])


def _shortened(line: str) -> str:
    line = _ADDRESS.sub("", line.rstrip())
    return line if len(line) <= EVIDENCE_LINE_CHARACTERS_MAX else line[:EVIDENCE_LINE_CHARACTERS_MAX] + "…"


def _refuse(call: str, wanted: str, answer: object) -> NoReturn:
    raise _nonsense(call, f"{type(answer).__name__}, not {wanted}", answer)


def _nonsense(call: str, returned: str, answer: object) -> BackendFault:
    return BackendFault(RAISED, f"{call} returned {returned}", _shown(answer), FailedCall(call))


def _shown(answer: object) -> str:
    try:
        return _shortened(repr(answer))
    except Exception:  # whatever it is, it cannot even be shown
        return ""


def _check_observations(call: str, observations: object) -> None:
    if type(observations) is not tuple:
        _refuse(call, "a tuple of observations", observations)
    for observation in observations:
        _check_fields(call, observation, _OBSERVATIONS, "an observation")


def _check_fields(call: str, value: object, known: Mapping[type[object], _Hints], wanted: str) -> None:
    hints = known.get(type(value))
    if hints is None:
        _refuse(call, wanted, value)
    for name, hint in hints:
        if not isinstance(getattr(value, name), hint):
            _refuse(call, f"{wanted} whose {name} is {getattr(hint, '__name__', hint)}", value)


def _check_description(description: object) -> None:
    if not isinstance(description, Description):
        _refuse("describe()", "a Description", description)
    gauges = description.gauges
    wanted: Mapping[str, tuple[bool, str]] = {
        "name": (isinstance(description.name, str), "text"),
        "version": (isinstance(description.version, str), "text"),
        "capabilities": (_is_set_of(description.capabilities, Capability), "a frozenset of Capability"),
        "promises": (_is_set_of(description.promises, Promise), "a frozenset of Promise"),
        "gauges": (
            isinstance(gauges, Mapping)
            and _is_set_of(frozenset(gauges), Gauge)
            and all(_is_set_of(sources, Source) for sources in gauges.values()),
            "a mapping of Gauge to a frozenset of Source",
        ),
        "alignment_bytes": (isinstance(description.alignment_bytes, int), "a whole number"),
        "chunk_bytes": (isinstance(description.chunk_bytes, int), "a whole number"),
        "footprint_factor": (isinstance(description.footprint_factor, int), "a whole number"),
    }
    for field, (is_so, what) in wanted.items():
        if not is_so:
            value = getattr(description, field)
            raise _nonsense("describe()", f"a Description whose {field} is {_shown(value)}, not {what}", description)


def _is_set_of(values: object, kind: type[object]) -> bool:
    return isinstance(values, Set) and all(isinstance(value, kind) for value in values)
