"""Where the things of a ledger came from, for findings about them: the call that made each, and its call stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from quiesce.findings import CallSite, Finding, Frame
from quiesce.simulator.ledger import LiveThing, Record, Seen
from quiesce.simulator.stacks import CallStacks
from quiesce.traces.folding import frames_of

_ABOUT_BLOCKS: Final = frozenset({Seen.FREED_TWICE, Seen.USED_AFTER_FREE, Seen.OUT_OF_BOUNDS, Seen.DAMAGED})
_ROLES: Final = {
    Seen.FREED_TWICE: "freed again by",
    Seen.FREED_FOREIGN: "freed by",
    Seen.USED_AFTER_FREE: "used by",
    Seen.OUT_OF_BOUNDS: "used by",
    Seen.DAMAGED: "seen by",
    Seen.DEAD_HANDLE: "used by",
    Seen.STAGED_AGAIN: "copied by",
}
"""What the call that breaks a rule did."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that made or freed something."""

    function: str
    observation: int
    stack: int


class Origins:
    """Takes observations in order, and says of later ones where the block or handle that they are about came from.

    Findings name calls at once, and get the stacks of all of them together (:meth:`told`): native code is asked for its
    lines once.
    """

    def __init__(self, stacks: CallStacks | None) -> None:
        self._stacks = stacks
        self._by_start: dict[int, _Call] = {}
        self._by_end: dict[int, _Call] = {}
        self._freed: dict[int, _Call] = {}
        self._handles: dict[int, _Call] = {}
        self._frames: dict[int, tuple[Frame, ...]] = {0: ()}
        self._stack_of: dict[int, int] = {}

    def see(self, record: Record) -> None:
        """Enter one observation."""
        match record.seen:
            case Seen.ALLOCATED:
                call = _call(record)
                self._by_start[record.address] = self._by_end[record.address + record.size_bytes] = call
                self._freed.pop(record.address, None)
            case Seen.FREED:
                self._freed[record.address] = _call(record)
            case Seen.CREATED:
                self._handles[record.object] = _call(record)
            case _:
                pass

    def explain(self, finding: Finding, record: Record) -> Finding:
        """Return the finding with where its block or handle came from, and by whom the call was made."""
        start = record.other if record.seen is Seen.USED_AFTER_FREE else record.address
        made = self._made(record, start)
        freed = self._freed.get(start) if record.seen in _ABOUT_BLOCKS else None
        sites = [self._site("created by" if record.seen is Seen.DEAD_HANDLE else "allocated by", made)] if made else []
        sites += [self._site("freed by", freed)] if freed else []
        return replace(finding, call_sites=(*sites, self.site(_ROLES[record.seen], record)))

    def _made(self, record: Record, start: int) -> _Call | None:
        if record.seen is Seen.DEAD_HANDLE:
            return self._handles.get(record.object)
        if record.seen is Seen.OUT_OF_BOUNDS:
            return self._by_end.get(record.other)
        return self._by_start.get(start) if record.seen in _ABOUT_BLOCKS else None

    def site(self, role: str, made: Record | LiveThing) -> CallSite:
        """Return the call of an observation, or the one that made something live; its stack is still to come."""
        if isinstance(made, Record):
            return self._site(role, _call(made))
        return self._site(role, _Call(made.function, made.observation, made.stack))

    def site_with_stack(self, role: str, made: Record | LiveThing) -> CallSite:
        """Return the call of an observation, or the one that made something live, and who called for it."""
        self._find([made.stack])
        return replace(self.site(role, made), frames=self._frames[made.stack])

    def site_of_call(self, role: str, function: str, observation: int, stack: int) -> CallSite:
        """Return a call of which no more than that is known, and who made it."""
        self._find([stack])
        return CallSite(role, function, observation, self._frames[stack])

    def _site(self, role: str, call: _Call) -> CallSite:
        self._stack_of[call.observation] = call.stack
        return CallSite(role, call.function, call.observation)

    def told(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return findings with the stacks of their calls, and with what these say in a line each."""
        kept = list(findings)
        self._find(self._stack_of[site.observation] for finding in kept for site in finding.call_sites)
        return [self._with_stacks(finding) for finding in kept]

    def _with_stacks(self, finding: Finding) -> Finding:
        sites = tuple(replace(site, frames=self._frames_of_call(site.observation)) for site in finding.call_sites)
        made = next((str(site) for site in sites if site.role in ("allocated by", "created by")), "")
        said = [site.sentence for site in sites if site.frames and site.role not in ("allocated by", "created by")]
        evidence = "\n".join([*said, *([finding.evidence] if finding.evidence else [])])
        return replace(finding, call_sites=sites, allocated_by=made, evidence=evidence)

    def _frames_of_call(self, observation: int) -> tuple[Frame, ...]:
        return self._frames[self._stack_of[observation]]

    def _find(self, numbers: Iterable[int]) -> None:
        missing = sorted({number for number in numbers if number not in self._frames})
        if self._stacks is None:
            self._frames.update(dict.fromkeys(missing, ()))
            return
        self._stacks.find(missing)
        for number in missing:
            stack = self._stacks.stack(number)
            self._frames[number] = frames_of(stack) if stack else ()

    def places(self, stacks: Sequence[int]) -> list[tuple[tuple[str, str], ...]]:
        """Return for each of some stacks who called, equal for those of one place in the code."""
        self._find(stacks)
        return [_place(self._frames[stack]) for stack in stacks]

    def made_at(self, stack: int) -> str:
        """Return :func:`made_at` of a stack."""
        self._find([stack])
        return made_at(self._frames[stack])

    def note(self) -> str:
        """Return what to install so that stacks say more, or an empty text."""
        return self._stacks.note() if self._stacks else ""


def _call(record: Record) -> _Call:
    return _Call(record.function, record.number, record.stack)


def _place(frames: tuple[Frame, ...]) -> tuple[tuple[str, str], ...]:
    """Return what is the same of all stacks of one place: compilers write one call several times, as in a loop."""
    return tuple(
        (frame.function, frame.place if frame.line or not frame.function else frame.module)
        for frame in frames
        if not frame.folded
    )


def made_at(frames: tuple[Frame, ...]) -> str:
    """Return ``at train.py:8``, the program's own innermost frame; the innermost one where none is its own.

    Of a frame without a line it is ``by function (module)``, and empty where there is no frame.
    """
    shown = [frame for frame in frames if not frame.folded] or list(frames)
    if not shown:
        return ""
    frame = next((each for each in shown if each.is_own), shown[0])
    return f"at {PurePosixPath(frame.file).name}:{frame.line}" if frame.line else f"by {frame}"
