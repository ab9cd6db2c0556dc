"""Where the things of a ledger came from, for findings about them: the call that made each, and its call stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from quiesce.findings import Finding
from quiesce.simulator.ledger import LiveThing, Record, Seen
from quiesce.simulator.stacks import CallStack, CallStacks, NativeFrame

FRAMES_MAX: Final = 8
"""How many frames are shown, from the innermost one."""
_OUTERMOST: Final = frozenset({"main", "start_thread", "_start"})
"""Where every program and thread begins: nothing is learnt from what is around these."""
_ABOUT_BLOCKS: Final = frozenset({Seen.FREED_TWICE, Seen.USED_AFTER_FREE, Seen.OUT_OF_BOUNDS, Seen.DAMAGED})


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that made or freed something."""

    function: str
    observation: int
    stack: int


class Origins:
    """Takes observations in order, and says of later ones where the block or handle that they are about came from."""

    def __init__(self, stacks: CallStacks | None) -> None:
        self._stacks = stacks
        self._by_start: dict[int, _Call] = {}
        self._by_end: dict[int, _Call] = {}
        self._freed: dict[int, _Call] = {}
        self._handles: dict[int, _Call] = {}
        self._texts: dict[int, str] = {}

    def see(self, record: Record) -> None:
        """Enter one observation."""
        match record.seen:
            case Seen.ALLOCATED:
                call = _Call(record.function, record.number, record.stack)
                self._by_start[record.address] = self._by_end[record.address + record.size_bytes] = call
                self._freed.pop(record.address, None)
            case Seen.FREED if self._stacks is not None:
                self._freed[record.address] = _Call(record.function, record.number, record.stack)
            case Seen.CREATED:
                self._handles[record.object] = _Call(record.function, record.number, record.stack)
            case _:
                pass

    def explain(self, finding: Finding, record: Record) -> Finding:
        """Return the finding with where its block or handle came from, and by whom the call was made."""
        start = record.other if record.seen is Seen.USED_AFTER_FREE else record.address
        made = self._made(record, start)
        freed = self._freed.get(start) if record.seen in _ABOUT_BLOCKS else None
        told = [f"{record.function} was called by {text}"] if (text := self._text(record.stack)) else []
        if freed is not None:
            told.append(f"it was freed by {self._shown(freed)}")
        return replace(finding, allocated_by=self._shown(made) if made else "", evidence="\n".join(told))

    def _made(self, record: Record, start: int) -> _Call | None:
        if record.seen is Seen.DEAD_HANDLE:
            return self._handles.get(record.object)
        if record.seen is Seen.OUT_OF_BOUNDS:
            return self._by_end.get(record.other)
        return self._by_start.get(start) if record.seen in _ABOUT_BLOCKS else None

    def callers(self, *records: Record) -> str:
        """Return who made some calls, a line for each that is known."""
        texts = [(record, self._text(record.stack)) for record in records]
        return "\n".join(f"{record.function} (observation {record.number}) by {text}" for record, text in texts if text)

    def place(self, thing: LiveThing) -> str:
        """Return who called for something that is live, empty where that is not known."""
        return self._text(thing.stack)

    def of(self, thing: LiveThing) -> str:
        """Return where something that is live came from."""
        return self._shown(_Call(thing.function, thing.observation, thing.stack))

    def _shown(self, call: _Call) -> str:
        text = self._text(call.stack)
        return f"{call.function} (observation {call.observation})" + (f" by {text}" if text else "")

    def _text(self, number: int) -> str:
        if number not in self._texts:
            stack = self._stacks.stack(number) if self._stacks else None
            self._texts[number] = shown(stack) if stack else ""
        return self._texts[number]


def shown(stack: CallStack) -> str:
    """Return a call stack on one line, innermost frame first: its Python frames where it has any."""
    frames = list(map(str, stack.python)) or list(map(str, _of_interest(stack.native)))
    more = len(frames) - FRAMES_MAX
    return " < ".join(frames[:FRAMES_MAX]) + (f" < {more} more" if more > 0 else "")


def _of_interest(frames: tuple[NativeFrame, ...]) -> Iterator[NativeFrame]:
    for frame in frames:
        yield frame
        if frame.function in _OUTERMOST:
            return
