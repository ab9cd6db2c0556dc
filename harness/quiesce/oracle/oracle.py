"""The oracle: it watches one context, operation by operation, and says what was broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias, get_args

from quiesce.backend import Closing, Description, DeviceProfile, Reply
from quiesce.findings import Finding
from quiesce.gauges import Readings
from quiesce.operations import Mark, Operation
from quiesce.oracle.change import Change
from quiesce.oracle.invariants import AFTER_THE_ANSWER, BEFORE_THE_ANSWER
from quiesce.oracle.invariants.answers import judge_answer
from quiesce.oracle.invariants.closing import judge_closing
from quiesce.oracle.model import Model
from quiesce.oracle.permits import Permitted, permits
from quiesce.oracle.rules import Invariant
from quiesce.outcomes import Done, Unsupported

_Invariants: TypeAlias = tuple[Invariant, ...]


def _by_operation(invariants: _Invariants) -> Mapping[type[Operation], _Invariants]:
    return {
        operation: tuple(invariant for invariant in invariants if operation in invariant.on)
        for operation in get_args(Operation)
    }


_BEFORE: Final = _by_operation(BEFORE_THE_ANSWER)
_AFTER: Final = _by_operation(AFTER_THE_ANSWER)


class Oracle:
    """Judges a context of a backend that was described by ``description`` and opened on ``profile``."""

    def __init__(self, description: Description, profile: DeviceProfile) -> None:
        self.model = Model(description, profile)

    def permits(self, operation: Operation) -> Permitted:
        """Return the permitted outcomes of the next operation."""
        return permits(self.model, operation)

    def judge(
        self, operation: Operation, reply: Reply, before: Readings, after: Readings, description: str
    ) -> tuple[Finding, ...]:
        """Enter one performed operation and return how it broke the first rule that it broke.

        ``description`` says where the operation comes from.
        """
        if isinstance(reply.outcome, Unsupported):
            return ()
        permitted = self.permits(operation)
        change = self.model.apply(operation, reply.outcome, reply.observations, before, after, description)
        return (
            self._first_broken(_BEFORE, change)
            or tuple(judge_answer(operation, reply.outcome, permitted))
            or self._first_broken(_AFTER, change)
        )

    def _first_broken(self, invariants: Mapping[type[Operation], _Invariants], change: Change) -> tuple[Finding, ...]:
        for invariant in invariants[type(change.operation)]:
            if invariant.about and not getattr(change, invariant.about):
                continue
            # Later rules read the state that this one found broken: what they say then proves nothing.
            if findings := tuple(invariant.check(self.model, change)):
                return tuple(replace(finding, fault_class=invariant.fault_class) for finding in findings)
        return ()

    def judge_closing(self, closing: Closing) -> tuple[Finding, ...]:
        """Judge what is left after the context was closed."""
        change = Change(Mark("closing"), Done(), closing.observations, {}, closing.readings, "closing")
        self.model.see(closing.observations, None, change)
        return tuple(judge_closing(self.model, closing.readings))
