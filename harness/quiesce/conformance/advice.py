"""Advice: what to write instead of whatever made a call into a backend fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from quiesce.contract import RAISED
from quiesce.findings import Finding
from quiesce.results import Result

_INSTEAD: Final[Mapping[str, str]] = {
    "describe() raised": "a Description; raise quiesce.errors.BackendUnavailable where the backend cannot work here",
    "describe() returned": (
        "a Description: capabilities and promises are frozensets of Capability and Promise, "
        "gauges maps a Gauge to a frozenset of Source"
    ),
    "open() raised": "a fresh context; raise quiesce.errors.BackendUnavailable for a profile that cannot be provided",
    "open() returned": "a fresh context, with the methods perform, readings and close",
    "perform() raised MemoryError": "Reply(OutOfMemory()): running out of memory is an answer",
    "perform() raised KeyError": "Reply(Rejected(INVALID_VALUE)) for a slot that names nothing: that is an answer too",
    "perform() raised NotImplementedError": "Reply(Unsupported(reason)), and do not claim the capability",
    "perform() raised": (
        "a Reply: Rejected(code), OutOfMemory() or Unsupported(reason); raise BackendFault where the subject is dead"
    ),
    "perform() returned": "Reply(outcome, observations), with values of quiesce.outcomes and quiesce.observations",
    "readings() raised": "the gauges as they are, in any state of the context",
    "readings() returned": "a mapping from (Gauge, Source) to int, with every gauge that describe() names",
    "close() raised": "a Closing, in any state of the context, and again when it is closed a second time",
    "close() returned": "Closing(observations, readings), the gauges read after everything was released",
}


def advised(result: Result) -> Result:
    """Return a result whose findings about calls say what to write instead."""
    return replace(result, findings=tuple(map(_advise, result.findings)))


def _advise(finding: Finding) -> Finding:
    if finding.rule != RAISED:
        return finding
    instead = next((text for start, text in _INSTEAD.items() if finding.observed.startswith(start)), "")
    return replace(finding, expected=instead or finding.expected)
