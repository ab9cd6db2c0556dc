"""The oracle: it watches one context, operation by operation, and says what was broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, get_args

from quiesce.backend import Closing, Description, DeviceProfile, Reply
from quiesce.findings import Finding
from quiesce.gauges import Readings
from quiesce.observations import Observation
from quiesce.operations import Mark, Operation
from quiesce.oracle import sightings
from quiesce.oracle.change import Change
from quiesce.oracle.model import Model
from quiesce.oracle.permits import permits
from quiesce.oracle.permitted import Permitted
from quiesce.oracle.rule import Rule
from quiesce.oracle.rules import AFTER_THE_ANSWER, BEFORE_THE_ANSWER
from quiesce.oracle.rules.answers import judge_answer
from quiesce.oracle.rules.closing import judge_closing
from quiesce.outcomes import Done, Unsupported

_Rules: TypeAlias = tuple[Rule, ...]
_ByOperation: TypeAlias = Mapping[type[Operation], _Rules]


def _by_operation(rules: Iterable[Rule]) -> _ByOperation:
    kept = tuple(rules)
    return {operation: tuple(each for each in kept if operation in each.on) for operation in get_args(Operation)}


_BEFORE: Final = _by_operation(BEFORE_THE_ANSWER)
_BEFORE_WHERE_NOTHING_STANDS_OUT: Final = _by_operation(each for each in BEFORE_THE_ANSWER if not each.about)
_AFTER: Final = _by_operation(AFTER_THE_ANSWER)


class Oracle:
    """Judges a context of a backend that was described by ``description`` and opened on ``profile``."""

    def __init__(self, description: Description, profile: DeviceProfile) -> None:
        self.model = Model(description, profile)

    def permits(self, operation: Operation) -> Permitted:
        """Return the permitted outcomes of the next operation."""
        return permits(self.model, operation)

    def begin(self, observations: tuple[Observation, ...]) -> None:
        """Enter what was observed while the context was opened. Where that is nothing, the first answer may tell it."""
        if observations:
            self.model.apply(Mark("opened"), Done(), observations, {}, {}, "opening")

    def judge(
        self, operation: Operation, reply: Reply, before: Readings, after: Readings, origin: object
    ) -> tuple[Finding, ...]:
        """Enter one performed operation and return how it broke the first rule that it broke.

        ``origin`` says as text where the operation comes from; nobody asks before something is found.
        """
        if isinstance(reply.outcome, Unsupported):
            return ()
        permitted = permits(self.model, operation)
        change = self.model.apply(operation, reply.outcome, reply.observations, before, after, origin)
        kind = type(operation)
        if findings := self._first_broken(
            (_BEFORE if change.stands_out else _BEFORE_WHERE_NOTHING_STANDS_OUT)[kind], change
        ):
            return findings
        if not permitted.permits(reply.outcome):
            return tuple(judge_answer(operation, reply.outcome, permitted, self.model.captures.spoiled_by))
        return self._first_broken(_AFTER[kind], change)

    def _first_broken(self, rules: _Rules, change: Change) -> tuple[Finding, ...]:
        for rule in rules:
            if rule.about and not getattr(change, rule.about):
                continue
            # Later rules read the state that this one found broken: what they say then proves nothing.
            if findings := tuple(rule.check(self.model, change)):
                return tuple(replace(finding, kind=rule.kind) for finding in findings)
        return ()

    def judge_closing(self, closing: Closing, *, in_flight: bool = False) -> tuple[Finding, ...]:
        """Judge what is left after the context was closed; ``in_flight``: with work, and with all that was owned."""
        change = Change(Mark("closing"), Done(), closing.observations, {}, closing.readings, "closing")
        sightings.see(self.model, closing.observations, None, change)
        return tuple(judge_closing(self.model, closing.readings, in_flight=in_flight))
