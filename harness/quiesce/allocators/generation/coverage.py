"""Which actions were exercised in which states: a campaign that never frees during a capture proves nothing about it.

States are told from the requests that were served, by a context that passes everything on and looks.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, get_args

from quiesce.allocators.generation.state import State
from quiesce.allocators.generation.things import Clock, Stream
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, Closing, Context, Description, DeviceProfile, Foreseeing, Reply
from quiesce.model.gauges import Readings
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Allocated, Done, OutOfMemory, Rejected
from quiesce.model.wording import counted

STATES: Final[Mapping[str, str]] = {
    "empty": "no block is owned",
    "few": "up to 8 blocks are owned",
    "many": "more than 8 blocks are owned",
    "full": "a request ran out of memory, and nothing was freed since",
    "holes": "a block was freed that lay between two owned ones",
    "pending": "a block was freed with work that nobody has waited for",
    "stalled": "a stream is stalled",
    "busy": "three streams have work that nobody has waited for",
    "merged": "a stream comes behind such work of two others",
    "capture": "a stream is being captured",
    "freed": "a block was freed during the capture",
    "pools": "the sequence has pools of its own",
    "device": "another device than the first is current",
    "refused": "the last request was refused",
}
"""The states, each with what it means. Several hold at once."""

ACTIONS: Final = tuple(operation.__name__ for operation in get_args(ops.Operation) if operation is not ops.Mark)
MANY_BLOCKS: Final = 8
BUSY_STREAMS: Final = 3


class Coverage:
    """Counts pairs of action and state, over any number of sequences."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()

    def actions(self) -> tuple[str, ...]:
        """Return the actions that were exercised at all, in the order of the operations."""
        seen = {action for action, _ in self.pairs}
        return tuple(action for action in ACTIONS if action in seen)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how often each action met each state, with 0 for a pair that was never reached."""
        return {action: {state: self.pairs[action, state] for state in STATES} for action in self.actions()}

    def table(self) -> str:
        """Return a table of actions by states; a dot is a pair that was never reached."""
        width = max((len(action) for action in self.actions()), default=0)
        columns = {state: max(len(state), len(str(self._largest(state)))) for state in STATES}
        lines = [" " * width + "".join(f"  {state:>{size}}" for state, size in columns.items())]
        for action in self.actions():
            counts = (f"  {self.pairs[action, state] or '.':>{size}}" for state, size in columns.items())
            lines.append(f"{action:<{width}}{''.join(counts)}")
        reached, possible = len(self.pairs), len(self.actions()) * len(STATES)
        actions = counted(len(self.actions()), "action")
        lines.append(f"{reached} of {counted(possible, 'pair')} of {actions} and {len(STATES)} states reached")
        return "\n".join(lines) + "\n"

    def _largest(self, state: str) -> int:
        return max((count for (_, each), count in self.pairs.items() if each == state), default=0)


class Watched:
    """A backend whose contexts count what is asked of them."""

    def __init__(self, backend: Backend, coverage: Coverage) -> None:
        self._backend = backend
        self._coverage = coverage

    def describe(self) -> Description:
        """Return the backend's own description."""
        return self._backend.describe()

    def open(self, profile: DeviceProfile) -> Context:
        """Open the backend and watch its context."""
        context = self._backend.open(profile)
        return _WatchedContext(context, _Watch(State(self.describe(), profile)), self._coverage)


class _WatchedContext:
    def __init__(self, context: Context, watch: _Watch, coverage: Coverage) -> None:
        self._watch = watch
        self._pairs = coverage.pairs
        self._context = context
        self._foreseeing = context if isinstance(context, Foreseeing) else None

    @property
    def foresees(self) -> bool:
        return self._foreseeing is not None and self._foreseeing.foresees

    def foresee(self, operations: Iterable[Operation]) -> None:
        if self._foreseeing is not None:
            self._foreseeing.foresee(operations)

    def perform(self, operation: Operation) -> Reply:
        action = type(operation).__name__
        for state in self._watch.states():
            self._pairs[action, state] += 1
        reply = self._context.perform(operation)
        self._watch.follow(operation, reply)
        return reply

    def readings(self) -> Readings:
        return self._context.readings()

    def close(self) -> Closing:
        return self._context.close()


class _Watch:
    """Follows one sequence."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._addresses: list[int] = []
        self._address_of: dict[str, int] = {}
        self._pending: list[Clock] = []
        self._full = self._holes = self._freed_in_capture = self._refused = False

    def states(self) -> Iterator[str]:
        """Yield the states that hold now."""
        state = self._state
        owned = len(state.blocks)
        yield "empty" if not owned else "few" if owned <= MANY_BLOCKS else "many"
        if self._full:
            yield "full"
        if self._holes:
            yield "holes"
        if self._pending:
            yield "pending"
        streams = state.streams.values()
        if any(stream.stalled for stream in streams):
            yield "stalled"
        busy = [stream for stream in streams if stream.passed > state.order.known.get(stream, 0)]
        if len(busy) >= BUSY_STREAMS:
            yield "busy"
        if any(self._is_merged(stream) for stream in busy):
            yield "merged"
        if state.captures:
            yield "capture"
            if self._freed_in_capture:
                yield "freed"
        if state.pools:
            yield "pools"
        if state.device:
            yield "device"
        if self._refused:
            yield "refused"

    def _is_merged(self, stream: Stream) -> bool:
        known = self._state.order.known
        others = [other for other, point in stream.behind.items() if point > known.get(other, 0)]
        return len(others) >= BUSY_STREAMS - 1

    def follow(self, operation: Operation, reply: Reply) -> None:
        """Enter an operation and its answer."""
        state, outcome = self._state, reply.outcome
        self._refused = isinstance(outcome, Rejected)
        self._full = self._full or isinstance(outcome, OutOfMemory)
        if not isinstance(outcome, Allocated | Done):
            return
        if isinstance(operation, ops.Free):
            self._follow_free(operation)
        state.apply(operation)
        if isinstance(outcome, Allocated) and isinstance(operation, ops.Allocate | ops.Stage) and outcome.address:
            self._address_of[operation.slot] = outcome.address
            insort(self._addresses, outcome.address)
        if not state.captures:
            self._freed_in_capture = False
        if not state.blocks:
            self._holes = False
        if self._pending and isinstance(operation, _WAITS):
            self._pending = [clock for clock in self._pending if not state.order.are_behind(None, clock)]

    def _follow_free(self, operation: ops.Free) -> None:
        state = self._state
        self._full = False
        self._freed_in_capture = bool(state.captures)
        block = state.blocks.get(operation.slot)
        if block is not None and not state.order.are_behind(None, block.uses):
            self._pending.append(dict(block.uses))
        address = self._address_of.pop(operation.slot, None)
        if address is not None:
            position = bisect_left(self._addresses, address)
            self._holes = self._holes or 0 < position < len(self._addresses) - 1
            del self._addresses[position]


_WAITS: Final = (ops.SynchronizeDevice, ops.SynchronizeStream, ops.SynchronizeEvent, ops.DestroyInstance)
