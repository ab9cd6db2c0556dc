"""Shrinking: a case that breaks a rule becomes a short one that breaks the same rule.

Lines are removed by delta debugging (Zeller and Hildebrandt 2002), then in runs from anywhere and in pairs; what is
left is simplified, slots are merged, and large blocks, or a small device, are tried in the place of many small blocks.
A candidate counts only if it is no less legal than the case it came from: a shorter sequence with a race of its own
would blame the backend for nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from quiesce.allocators.cases import Case, PerformStep, SlotKind, check_slots, expand
from quiesce.allocators.generation.editing import (
    Body,
    alike,
    keep,
    leaves,
    makings,
    numbered,
    replace_at,
    requests,
    size_of,
    with_short_names,
)
from quiesce.allocators.generation.legality import worst_legality
from quiesce.allocators.generation.reshaping import (
    allocations,
    bodies_without,
    cases_without,
    larger_bodies,
    loopless_body,
    made_later,
    merged_bodies,
    shorter_loops,
    simpler_devices,
    simpler_operations,
    smaller_bodies,
    staged_bodies,
    tight_cases,
)
from quiesce.allocators.lockstep import run_lockstep
from quiesce.model.backend import Backend, Capability, DeviceProfile
from quiesce.model.errors import CaseError
from quiesce.model.findings import Finding
from quiesce.model.rules import IN_TIME

TRIALS_MAX: Final = 6000
HANGS_MAX: Final = 10
"""So many trials may end with a driver program that does not answer: each lasts as long as it is waited for."""
PAIRS_MAX: Final = 30
"""With more lines left, they are not removed two by two."""
RUN_LINES_MAX: Final = 40
"""With more lines left, runs of every length are not removed from everywhere."""
_FILLING_MIN: Final = 5
"""With fewer lines left, larger blocks and smaller devices save none."""

Known: TypeAlias = dict[Hashable, tuple[Finding, ...]]
"""How the cases fail that were run. Cases that differ in nothing but names of slots fail alike, and are run once."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The shortest case that was found, how it fails, and how many candidates were run.

    ``interrupted`` says that the user did not wait for the end.
    """

    case: Case
    finding: Finding
    trials: int
    interrupted: bool = False


def shrink(
    backend: Backend,
    case: Case,
    *,
    trials_max: int = TRIALS_MAX,
    progress: Callable[[int, int], None] | None = None,
    known: Known | None = None,
) -> Shrunk | None:
    """Return the case shortened, or None where it finds nothing on ``backend``.

    Raises :class:`BackendUnavailable` where the backend cannot be opened. ``progress`` is told the
    number of trials and of lines left. ``known`` is what was run before on this backend, and is added to.
    A :class:`KeyboardInterrupt` ends the search with the best that it has.
    """
    shrinker = _Shrinker(backend, replace(case, comments=()), trials_max, progress, {} if known is None else known)
    return shrinker.run()


class _Shrinker:
    def __init__(
        self,
        backend: Backend,
        case: Case,
        trials_max: int,
        progress: Callable[[int, int], None] | None,
        known: Known,
    ) -> None:
        self._backend = backend
        self._description = backend.describe()
        self._case = replace(case, body=numbered(case.body))
        self._left = trials_max
        self._trials_max = trials_max
        self._progress = progress
        self._known = known
        self._seen: set[tuple[DeviceProfile, Body]] = set()
        operations = [step.operation for step in expand(case) if isinstance(step, PerformStep)]
        self._legality = worst_legality(self._description, case.device, operations)
        self._finding: Finding | None = None
        self._interrupted = False
        self._hangs = 0

    def run(self) -> Shrunk | None:
        self._finding = self._find(self._case, self._key(self._case))
        if self._finding is None:
            return None
        try:
            self._shorten()
        except KeyboardInterrupt:
            self._interrupted = True
        assert self._finding is not None
        return Shrunk(self._case, self._finding, self._trials_max - self._left, self._interrupted)

    def _shorten(self) -> None:
        self._unroll()
        self._truncate()
        before: Case | None = None
        while before != self._case and self._left > 0:
            before = self._case
            self._remove_chunks()
            if self._size > RUN_LINES_MAX:
                self._make_later()
                self._fill_sooner()
            self._simplify_device()
            self._simplify_operations()
            self._merge_slots()
            self._do_without_slots()
            self._stage_copies()
            self._remove_runs()
            self._remove_pairs()
            if before == self._case:
                self._tighten()
                self._fill_sooner()
        self._name()

    # -- trials ----------------------------------------------------------------------------------------------------

    def _name(self) -> None:
        """Give the slots names for a reader, and let the finding say these."""
        named = self._with_body(with_short_names(self._case.body))
        finding = self._wanted(self._run(named))
        if finding is not None:
            self._case, self._finding = named, finding

    def _key(self, case: Case) -> Hashable:
        return self._legality, case.device, alike(case.body)

    def _find(self, case: Case, key: Hashable) -> Finding | None:
        """Return how a case breaks the rule in question (the first time: any), or None."""
        if key not in self._known:
            self._left -= 1
            self._known[key] = self._run(case)
        return self._wanted(self._known[key])

    def _wanted(self, findings: tuple[Finding, ...]) -> Finding | None:
        wanted = self._finding.rule if self._finding is not None else None
        return next((found for found in findings if wanted in (None, found.rule)), None)

    def _run(self, case: Case) -> tuple[Finding, ...]:
        """Return how a case fails on the backend, unless it is less legal than the first."""
        steps = list(expand(case))
        operations = [step.operation for step in steps if isinstance(step, PerformStep)]
        if worst_legality(self._description, case.device, operations) > self._legality:
            return ()
        trial = run_lockstep(self._backend, case.device, steps, timeline=False)
        self._hangs += any(found.rule == IN_TIME for found in trial.findings)
        if self._hangs == HANGS_MAX:
            self._left = 0
        return trial.findings

    def _accept(self, case: Case) -> bool:
        """Take a candidate if it still fails."""
        case = replace(case, body=numbered(case.body))
        key = (case.device, case.body)
        if self._left <= 0 or key in self._seen or not case.body:
            return False
        self._seen.add(key)
        known = self._key(case)
        try:
            if known not in self._known:
                check_slots(case.body, case.path)
            finding = self._find(case, known)
        except CaseError:
            return False
        if finding is None:
            return False
        self._case, self._finding = case, finding
        if self._progress is not None:
            self._progress(self._trials_max - self._left, self._size)
        return True

    @property
    def _size(self) -> int:
        return size_of(self._case.body)

    def _with_body(self, body: Body) -> Case:
        return replace(self._case, body=body)

    # -- fewer lines -----------------------------------------------------------------------------------------------

    def _truncate(self) -> None:
        line = self._finding.line if self._finding is not None else None
        if line is not None:
            kept = {position for position, each in enumerate(leaves(self._case.body)) if each.line <= line}
            self._accept(self._with_body(keep(self._case.body, kept)))

    def _remove_chunks(self) -> None:
        length = max(1, self._size // 2)
        while length:
            end = self._size
            while end > 0:
                removed = range(max(0, end - length), end)
                if self._remove(removed):
                    end = min(end, self._size)
                else:
                    end -= length
            length //= 2

    def _remove(self, removed: range | tuple[int, ...]) -> bool:
        kept = set(range(self._size)).difference(removed)
        return self._accept(self._with_body(keep(self._case.body, kept)))

    def _remove_runs(self) -> None:
        """Remove neighbours together, wherever they begin: a chunk that is full needs all of its blocks, or none."""
        if self._size > RUN_LINES_MAX:
            return
        for length in range(self._size - 1, 1, -1):
            start = 0
            while start + length <= self._size and self._left > 0:
                if not self._remove(range(start, start + length)):
                    start += 1

    def _remove_pairs(self) -> None:
        size = self._size
        if size > PAIRS_MAX:
            return
        for pair in itertools.combinations(range(size), 2):
            if self._left <= 0 or self._remove(pair):
                return

    # -- simpler lines ---------------------------------------------------------------------------------------------

    def _simplify_operations(self) -> None:
        for position in range(self._size):
            tried = True
            while tried:
                operation = dict(requests(self._case.body)).get(position)
                variants = simpler_operations(operation) if operation is not None else ()
                tried = any(self._accept(self._with_body(replace_at(self._case.body, position, v))) for v in variants)
        self._repeat(smaller_bodies)

    def _simplify_device(self) -> None:
        simplified = True
        while simplified:
            devices = [device for device in simpler_devices(self._case.device) if device != self._case.device]
            simplified = any(self._accept(replace(self._case, device=device)) for device in devices)

    def _merge_slots(self) -> None:
        """Let one thing do the work of two."""
        made = makings(self._case.body)
        for later, earlier in itertools.combinations(reversed(made), 2):
            if later.kind is earlier.kind and self._left > 0:
                any(self._accept(self._with_body(body)) for body in merged_bodies(self._case.body, later, earlier))

    def _do_without_slots(self) -> None:
        """Let the default stream and the default pool do what one of the sequence's own does, all of it at once."""
        self._repeat(bodies_without)

    def _stage_copies(self) -> None:
        """Make a block and copy to it in one request."""
        if Capability.STAGING in self._description.capabilities:
            self._repeat(staged_bodies)

    def _repeat(self, variants: Callable[[Body], Iterator[Body]]) -> None:
        taken = True
        while taken and self._left > 0:
            taken = any(self._accept(self._with_body(body)) for body in variants(self._case.body))

    def _make_later(self) -> None:
        """Make blocks just before they are named, one after the other, where that saves lines in the end."""
        before, finding = self._case, self._finding
        for making in reversed(makings(before.body)):
            if making.kind is SlotKind.BLOCK and self._left > 0:
                self._accept(self._with_body(made_later(self._case.body, making.slot)))
        if self._case is not before:
            self._remove_chunks()
        if self._size >= size_of(before.body):
            self._case, self._finding = before, finding

    def _fill_sooner(self) -> None:
        """Try large blocks in the place of small ones, and small devices, where that saves lines."""
        if self._size < _FILLING_MIN:
            return
        larger = larger_bodies(self._case.body, self._case.device, self._description.chunk_bytes)
        for candidate in (*tight_cases(self._case), *map(self._with_body, larger)):
            before, finding = self._case, self._finding
            if self._left > 0 and self._accept(candidate):
                self._remove_chunks()
                if self._size < size_of(before.body):
                    return
                self._case, self._finding = before, finding

    def _tighten(self) -> None:
        """Remove blocks that only fill the device, and as much of the device with them."""
        length = max(1, self._size // 2)
        while length:
            blocks = list(allocations(self._case.body))
            for start in range(len(blocks) - length, -1, -length):
                positions, gone = zip(*blocks[start : start + length], strict=True)
                if any(self._accept(case) for case in cases_without(self._case, positions, gone)):
                    break
            else:
                length //= 2

    # -- fewer iterations ------------------------------------------------------------------------------------------

    def _unroll(self) -> None:
        """Write loops out where the failure needs none, else let them run less often."""
        body = loopless_body(self._case)
        if body is not None and self._accept(self._with_body(body)):
            self._truncate()
            return
        any(self._accept(self._with_body(shorter)) for shorter in shorter_loops(self._case.body))
