"""What a case file says, as frozen values. Nothing here reads, expands or runs a case."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from quiesce.model.backend import Capability, DeviceProfile, Promise
from quiesce.model.gauges import Gauge


class CaseKind(enum.StrEnum):
    """A regression keeps a bug from coming back; a control is legal behaviour that passes with every fault.

    A regression names the fault of the museum that it catches. One of a user's own bug names none: it fails on the
    backend with the bug. A found case is a generated sequence that some backend failed: it names the rule and no fault.
    """

    REGRESSION = "regression"
    CONTROL = "control"
    FOUND = "found"


class ExpectedKind(enum.StrEnum):
    """The outcome kinds that a request line can state."""

    ALLOCATED = "allocated"
    DONE = "done"
    OUT_OF_MEMORY = "out of memory"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class ExpectedOutcome:
    """An outcome stated inline after ``->``; ``code`` None accepts any error code of a rejection."""

    kind: ExpectedKind
    code: str | None = None


class Comparison(enum.StrEnum):
    """How a gauge is compared."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    AT_MOST = "<="
    AT_LEAST = ">="
    BELOW = "<"
    ABOVE = ">"


@dataclass(frozen=True, slots=True)
class Request:
    """One request line. ``template`` may hold units and loop variables; expansion makes the operation."""

    template: str
    expected: ExpectedOutcome | None
    line: int


@dataclass(frozen=True, slots=True)
class ExpectGauge:
    """``expect GAUGE == VALUE [+ mark NAME]``: ``value`` is a size template, ``mark`` a remembered reading or None."""

    gauge: Gauge
    comparison: Comparison
    value: str
    mark: str | None
    line: int


@dataclass(frozen=True, slots=True)
class ExpectGrowth:
    """``expect GAUGE grows N per iteration after W``, about the repeat block directly above it.

    ``per_iteration`` and ``after`` (iterations of warm-up) are numbers; a gauge in bytes takes units in the file.
    """

    gauge: Gauge
    per_iteration: int
    after: int
    line: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """``repeat COUNT [as NAME]:`` and an indented block; the iteration number, from 0, is ``variable`` (``i``)."""

    count: int
    variable: str
    body: tuple[Statement, ...]
    line: int


Statement: TypeAlias = "Request | ExpectGauge | ExpectGrowth | Repeat"


@dataclass(frozen=True, slots=True)
class Known:
    """``known: SUBJECT VERSIONS NUMBER``: where an upstream release still misbehaves, and its number."""

    subject: str
    versions: str
    number: str


@dataclass(frozen=True, slots=True)
class Case:
    """One case file.

    ``identifier`` is the path below the corpus without its ending (``pool/squeeze_before_oom``); ``path`` is where
    it was read. ``needs`` holds the capabilities written in the file; ``promises`` those that it tests.
    ``finds`` is the rule that ``fault`` must break; both are empty for a control, the fault for a found case. A
    regression without a fault is a user's own (:attr:`is_own`); it may name the rule.
    """

    identifier: str
    path: str
    title: str
    kind: CaseKind
    upstream: tuple[str, ...]
    fault: str
    finds: str
    needs: frozenset[Capability]
    promises: frozenset[Promise]
    device: DeviceProfile
    known: tuple[Known, ...]
    body: tuple[Statement, ...]
    comments: tuple[tuple[int, str], ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether it is the regression of a bug that is not in the museum, so that nothing here can switch it on."""
        return self.kind is CaseKind.REGRESSION and not self.fault
