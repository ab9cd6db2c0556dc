"""The oracle: it watches one context, operation by operation, and says what was broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, get_args

from quiesce.allocators.oracle import observation_effects
from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.facts import RUNTIME
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.permits import ANY, ANYTHING, MEMORY, PERMITS, SUCCESS, Permitted
from quiesce.allocators.oracle.rule import Rule
from quiesce.allocators.oracle.rules import AFTER_THE_ANSWER, BEFORE_THE_ANSWER
from quiesce.allocators.oracle.rules.answers import judge_answer
from quiesce.allocators.oracle.rules.closing import judge_closing
from quiesce.model import operations as ops
from quiesce.model.backend import Closing, Description, DeviceProfile, Reply
from quiesce.model.findings import Finding
from quiesce.model.gauges import Readings
from quiesce.model.observations import Observation
from quiesce.model.operations import Mark, Operation, Slot
from quiesce.model.outcomes import Done, Unsupported

_CALLS_NOTHING_BELOW: Final = (
    ops.QueryStream,
    ops.QueryEvent,
    ops.Stall,
    ops.Release,
    ops.SelectDevice,
    ops.Mark,
    ops.InjectFailure,
)

_MAY_NEED_MEMORY: Final = (
    ops.CreateStream,
    ops.CreateEvent,
    ops.CreateInstance,
    ops.Partition,
    ops.CreatePolicy,
    ops.Initialize,
    ops.BeginCapture,
    ops.EndCapture,
    ops.RecordEvent,
    ops.WaitEvent,
    ops.Stall,
    ops.LaunchGraph,
    ops.Launch,
    ops.Copy,
    ops.Fill,
    ops.Node,
    ops.Backward,
)
"""A runtime may take memory of its own for what it makes, runs and puts on a stream: scratch (Kokkos), a graph, a
marker (``CL_OUT_OF_HOST_MEMORY`` of ``clEnqueueMarkerWithWaitList``), or a block itself, which OpenCL may provide when
a command first uses it (``CL_MEM_OBJECT_ALLOCATION_FAILURE`` of ``clEnqueueFillBuffer``)."""

_NAMES_IN_SLOT: Final = (
    ops.DestroyPool,
    ops.DestroyStream,
    ops.SynchronizeStream,
    ops.QueryStream,
    ops.Stall,
    ops.Release,
    ops.DestroyEvent,
    ops.RecordEvent,
    ops.WaitEvent,
    ops.QueryEvent,
    ops.SynchronizeEvent,
    ops.LaunchGraph,
    ops.DestroyGraph,
    ops.DestroyInstance,
)
_NAMES_THE_RUNTIME: Final = (
    ops.Initialize,
    ops.Finalize,
    ops.CreateInstance,
    ops.Partition,
    ops.CreatePolicy,
)


def permits(model: Model, operation: Operation) -> Permitted:
    """Return the permitted outcomes of ``operation``, before it is applied."""
    if model.doubts.things and not model.doubts.things.isdisjoint(_named(operation)):
        return ANYTHING
    permit = PERMITS.get(type(operation))
    permitted = SUCCESS if permit is None else permit(model, operation)
    if model.asked.kinds and isinstance(operation, _MAY_NEED_MEMORY):
        # The sequence may have left too little, which may come out before what else is wrong with the request.
        permitted = MEMORY if permitted is SUCCESS else replace(permitted, out_of_memory=True)
    if not model.failures or not permitted.success or isinstance(operation, _CALLS_NOTHING_BELOW):
        return permitted
    # The armed failure may be met: out of memory, or an error in the backend's own words.
    return replace(permitted, out_of_memory=True, codes=permitted.codes | {ANY})


def _named(operation: Operation) -> tuple[Slot | None, ...]:
    """Return the things but blocks that a request names, and is refused for where they are gone."""
    named: list[Slot | None] = [getattr(operation, name, None) for name in ("stream", "pool", "instance")]
    if isinstance(operation, _NAMES_IN_SLOT):
        named.append(operation.slot)
    if isinstance(operation, _NAMES_THE_RUNTIME):
        named.append(RUNTIME)
    return tuple(named)


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
            if rule.promise is not None and not self.model.promises(rule.promise):
                continue
            # Later rules read the state that this one found broken: what they say then proves nothing.
            if findings := tuple(rule.check(self.model, change)):
                return tuple(replace(finding, rule=rule.name, kind=finding.kind or rule.kind) for finding in findings)
        return ()

    def judge_closing(self, closing: Closing, *, in_flight: bool = False) -> tuple[Finding, ...]:
        """Judge what is left after the context was closed; ``in_flight``: with work, and with all that was owned."""
        change = Change(Mark("closing"), Done(), closing.observations, {}, closing.readings, "closing")
        observation_effects.see(self.model, closing.observations, None, change)
        return tuple(judge_closing(self.model, closing.readings, in_flight=in_flight))
