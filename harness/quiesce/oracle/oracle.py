"""The oracle: it watches one context, operation by operation, and says what was broken."""

from __future__ import annotations

from dataclasses import replace
from quiesce.backend import Closing, Description, DeviceProfile, Reply
from quiesce.findings import Finding
from quiesce.gauges import Readings
from quiesce.operations import Mark, Operation
from quiesce.oracle.invariants import AFTER_THE_ANSWER, BEFORE_THE_ANSWER
from quiesce.oracle.invariants.answers import judge_answer
from quiesce.oracle.invariants.closing import judge_closing
from quiesce.oracle.model import Change, Model
from quiesce.oracle.permits import Permitted, permits
from quiesce.oracle.rules import Invariant
from quiesce.outcomes import Done, Unsupported


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
        """Enter one performed operation and return how it broke the first rule that it broke; ``description`` is its origin."""
        if isinstance(reply.outcome, Unsupported):
            return ()
        permitted = self.permits(operation)
        change = self.model.apply(operation, reply.outcome, reply.observations, before, after, description)
        return (
            self._first_broken(BEFORE_THE_ANSWER, change)
            or tuple(judge_answer(operation, reply.outcome, permitted))
            or self._first_broken(AFTER_THE_ANSWER, change)
        )

    def _first_broken(self, invariants: tuple[Invariant, ...], change: Change) -> tuple[Finding, ...]:
        for invariant in invariants:
            # Later rules read the state that this one found broken: what they say then proves nothing.
            if findings := tuple(invariant.check(self.model, change)):
                return tuple(replace(finding, fault_class=invariant.fault_class) for finding in findings)
        return ()

    def judge_closing(self, closing: Closing) -> tuple[Finding, ...]:
        """Judge what is left after the context was closed."""
        change = Change(Mark("closing"), Done(), closing.observations, {}, closing.readings, "closing")
        self.model.see(closing.observations, None, change)
        return tuple(judge_closing(self.model, closing.readings))
