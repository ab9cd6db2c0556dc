"""Where the things of a ledger came from, for findings about them: the call that made each, and its call stack."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quiesce.model.findings import CallSite, Finding, Frame
from quiesce.simulator.judge.call_stacks import calls_of, frames_of, made_at, place_of
from quiesce.simulator.judge.drafts import Draft, finished, order_in_words
from quiesce.simulator.judge.kernel_accesses import call_in_kernel
from quiesce.simulator.runtime import OF_KERNELS, CallStacks, LiveThing, LoggedAccess, Record, Seen, VariableLog

_ABOUT_BLOCKS: Final = OF_KERNELS | {
    *(Seen.FREED_TWICE, Seen.USED_AFTER_FREE, Seen.OUT_OF_BOUNDS, Seen.DAMAGED, Seen.COPIED_UNWRITTEN),
    Seen.FREED_WHILE_OPEN,
}
_WITH_START: Final = OF_KERNELS | {Seen.USED_AFTER_FREE, Seen.COPIED_UNWRITTEN}
"""Of these the field ``other`` is where the block begins; 0 where there is none."""
_AFTER_FREE: Final = _ABOUT_BLOCKS - OF_KERNELS - {Seen.COPIED_UNWRITTEN, Seen.FREED_WHILE_OPEN} | {
    Seen.KERNEL_USED_FREED
}
_ROLES: Final = {
    Seen.FREED_TWICE: "freed again by",
    Seen.FREED_FOREIGN: "freed by",
    Seen.USED_AFTER_FREE: "used by",
    Seen.OUT_OF_BOUNDS: "used by",
    Seen.DAMAGED: "detected by",
    Seen.FREED_WHILE_OPEN: "freed by",
    Seen.DEAD_HANDLE: "used by",
    Seen.STAGED_AGAIN: "copied by",
    Seen.COPIED_UNWRITTEN: "copied by",
    Seen.COPY_MISDIRECTED: "copied by",
    **dict.fromkeys(OF_KERNELS, "launched by"),
}
"""What the call that breaks a rule did."""
EXPORTER: Final = "the process that exported it"
"""Who freed memory that was imported, as far as the process knows that imported it."""
_ENDED_MAX: Final = 100_000
"""Of so many handles that were destroyed last it is known who made them."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that made or freed something."""

    function: str
    number: int
    stack: int
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Untold(CallSite):
    """A call whose stack is still to come. ``size_bytes`` tells blocks apart where no stacks are kept."""

    stack: int = 0
    size_bytes: int = 0


class Origins:
    """Takes records in order, and says of later ones where the block or handle that they are about came from.

    Findings name calls at once, and get the stacks of all of them together (:meth:`told`): native code is asked for its
    lines once.
    """

    def __init__(
        self,
        stacks: CallStacks | None,
        variables: VariableLog | None = None,
        accesses: Callable[[], Sequence[LoggedAccess]] = tuple,
    ) -> None:
        self._stacks = stacks
        self._variables = variables or VariableLog(None)
        self._accesses = accesses
        self._logged: Sequence[LoggedAccess] = ()
        self._by_start: dict[int, _Call] = {}
        self._by_end: dict[int, _Call] = {}
        self._freed: dict[int, _Call] = {}
        self._handles: dict[int, _Call] = {}
        self._ended: deque[int] = deque()
        self._frames: dict[int, tuple[Frame, ...]] = {0: ()}
        self._node: _Call | None = None

    def see(self, record: Record) -> None:
        """Enter one record."""
        match record.seen:
            case Seen.ALLOCATED:
                call = _call(record)
                self._by_start[record.address] = self._by_end[record.address + record.size_bytes] = call
                self._freed.pop(record.address, None)
            case Seen.FREED:
                self._freed[record.address] = _call(record)
            case Seen.EXPORTER_FREED:
                self._freed[record.address] = _Call(EXPORTER, record.number, 0)
            case Seen.NODE_RAN:
                self._node = _call(record)
            case Seen.CREATED:
                self._handles[record.object] = _call(record)
            case Seen.DESTROYED:
                self._ended.append(record.object)
                if len(self._ended) > _ENDED_MAX:
                    self._handles.pop(self._ended.popleft(), None)
            case _:
                pass

    def variable_of(self, record: Record) -> str:
        """Return the name of the variable of device code that a record is about, or an empty text."""
        start = record.other if record.seen in _WITH_START else record.address
        made = self._by_end.get(record.other) if record.seen is Seen.OUT_OF_BOUNDS else self._by_start.get(start)
        return self._variables.name(made.number) if made else self._variables.name_at(start, record.number)

    def variable_made_by(self, record: Record) -> str:
        """Return the name of the variable of device code whose memory a record allocated, or an empty text."""
        return self._variables.name(record.number)

    def explain(self, finding: Finding, record: Record) -> Finding:
        """Return the finding with where its block or handle came from, and by whom the call was made.

        The call that made a variable is the one that used its module first: it says nothing.
        """
        start = record.other if record.seen in _WITH_START else record.address
        made = None if self.variable_of(record) else self._made(record, start)
        freed = self._freed.get(start) if record.seen in _AFTER_FREE else None
        sites = [self._site("created by" if record.seen is Seen.DEAD_HANDLE else "allocated by", made)] if made else []
        sites += [self._site("freed by", freed)] if freed else []
        if self._node is not None and self._node.number == record.number - 1:
            sites.append(self._site("node added by", self._node))
        return replace(finding, call_sites=(*sites, self.site(_ROLES[record.seen], record)))

    def _made(self, record: Record, start: int) -> _Call | None:
        if record.seen is Seen.DEAD_HANDLE:
            return self._handles.get(record.object)
        if record.seen is Seen.OUT_OF_BOUNDS:
            return self._by_end.get(record.other)
        return self._by_start.get(start) if record.seen in _ABOUT_BLOCKS else None

    def site(self, role: str, made: Record | LiveThing) -> CallSite:
        """Return the call of a record, or the one that made something live; its stack is still to come."""
        return self._site(role, _call_of(made))

    def site_with_stack(self, role: str, made: Record | LiveThing) -> CallSite:
        """Return the call of a record, or the one that made something live, and who called for it."""
        self._find([made.stack])
        return CallSite(role, made.function, _call_of(made).number, self._frames[made.stack])

    def site_of_call(self, role: str, function: str, number: int, stack: int) -> CallSite:
        """Return a call of which no more than that is known, and who made it."""
        self._find([stack])
        return CallSite(role, function, number, self._frames[stack])

    def _site(self, role: str, call: _Call) -> CallSite:
        return _Untold(role, call.function, call.number, (), call.stack, call.size_bytes)

    def told(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return findings with the stacks of their calls, and with what these say in a line each."""
        kept = list(findings)
        sites = [_stack_of(site) for finding in kept for site in finding.call_sites]
        self._find([*sites, *(call.stack for finding in kept for call in self._streams_of(finding).values())])
        return [self._with_stacks(finding) for finding in kept]

    def _streams_of(self, finding: Finding) -> dict[int, _Call]:
        """Return the calls that created the streams which a finding names."""
        numbers = (piece for piece in finding.order if isinstance(piece, int)) if isinstance(finding, Draft) else ()
        return {number: self._handles[number] for number in numbers if number in self._handles}

    def _expected(self, finding: Finding) -> str:
        """Return what is expected, with the place where each stream was created."""
        if not isinstance(finding, Draft) or not finding.order:
            return finding.expected
        streams = self._streams_of(finding)
        places = self.made_at([call.stack for call in streams.values()])
        return order_in_words(finding.order, dict(zip(streams, places, strict=True)))

    def _with_stacks(self, finding: Finding) -> Finding:
        sites = tuple(
            CallSite(site.role, site.call, site.number, self._frames[_stack_of(site)]) for site in finding.call_sites
        )
        made = next((str(site) for site in sites if site.role in ("allocated by", "created by")), "")
        said = [site.sentence for site in sites if site.frames and site.role not in ("allocated by", "created by")]
        evidence = "\n".join([*said, *([finding.evidence] if finding.evidence else [])])
        expected = self._expected(finding)
        return replace(finished(finding), expected=expected, call_sites=sites, allocated_by=made, evidence=evidence)

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
        return [place_of(self._frames[stack]) for stack in stacks]

    def made_at(self, stacks: Sequence[int]) -> list[str]:
        """Return :func:`quiesce.simulator.judge.call_stacks.made_at` for each of some stacks."""
        self._find(stacks)
        return made_at([self._frames[stack] for stack in stacks])

    @staticmethod
    def site_keys(sites: Iterable[CallSite]) -> Hashable:
        """Return what two calls with one stack have in common; no stack is read for it."""
        return tuple((site.role, site.call, _stack_of(site), _size_of(site)) for site in sites)

    def site_places(self, sites: Sequence[CallSite]) -> list[Hashable]:
        """Return for each of some calls what is equal for those that the same code made."""
        self._find(map(_stack_of, sites))
        return [(site.role, site.call, calls_of(self._frames[_stack_of(site)]), _size_of(site)) for site in sites]

    def _allocator(self, line: int | None) -> LoggedAccess | None:
        """Return the call of malloc in a kernel that a line of the log of accesses tells of."""
        if line is not None and line >= len(self._logged):
            self._logged = self._accesses()
        return self._logged[line] if line is not None and line < len(self._logged) else None

    def allocator_place(self, line: int | None) -> Hashable:
        """Return where in a kernel a call of malloc is, equal for those of one line of its source."""
        logged = self._allocator(line)
        return logged and (logged.kernel, logged.place.source or logged.place.ptx_line)

    def allocation_in_kernel(self, line: int | None, *, is_one: bool = True) -> str:
        """Return who allocated what, in words that follow what was allocated; or an empty text."""
        logged = self._allocator(line)
        return f"; {call_in_kernel(logged, 'allocated', 'it' if is_one else 'the first one')}" if logged else ""

    def note(self) -> str:
        """Return what to install so that stacks say more, or an empty text."""
        return self._stacks.note() if self._stacks else ""


def _call(record: Record) -> _Call:
    return _Call(record.function, record.number, record.stack, record.size_bytes)


def _call_of(made: Record | LiveThing) -> _Call:
    if isinstance(made, Record):
        return _call(made)
    return _Call(made.function, made.number, made.stack, made.size_bytes)


def _stack_of(site: CallSite) -> int:
    return site.stack if isinstance(site, _Untold) else 0


def _size_of(site: CallSite) -> int:
    """Return the size of an allocated block where no stack says who made it."""
    return site.size_bytes if isinstance(site, _Untold) and site.role == "allocated by" and not site.stack else 0
