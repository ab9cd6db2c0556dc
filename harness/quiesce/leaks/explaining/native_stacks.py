"""Where native code asks for memory that it never frees: memray says it, where it is installed.

A few more rounds are run under its tracker, once the verdict is there. It follows malloc from the outside, and unwinds
the stack of each call. Where it is not there or names no line, the C heap is counted after each line of a few rounds:
one line that alone adds what is lost calls the code that loses it.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from quiesce.leaks.explaining.lines import ROUNDS as LINE_ROUNDS
from quiesce.leaks.explaining.lines import Company, Counts, LineWatch
from quiesce.leaks.judgement import Growth
from quiesce.leaks.meters.memory import HEAP
from quiesce.leaks.meters.tracing import Site
from quiesce.leaks.owners import Frame, Owners, frame_text
from quiesce.leaks.quantities import C_HEAP, PYTHON
from quiesce.leaks.readings import Readings
from quiesce.leaks.stages.rounds import Budget, Rounds, Stopped
from quiesce.leaks.stages.settling import collect_garbage

ROUNDS: Final = 8
ROUNDS_LEAST: Final = 2  # where they take long
SECONDS_MAX: Final = 1.0
SHOWN: Final = 3

OF_PYTHON: Final = ("PyMem_", "_PyMem_", "PyObject_", "_PyObject_")
"""How the functions of Python's own allocators begin: their callers are known from Python's traces."""

UNKNOWN: Final = "<unknown>"

COUNTING_COST: Final = 20
"""So many times as long as an event of a line takes it to count the C heap."""

MARGIN: Final = 1 / 8
"""What share of the growth a line may be off: memory that comes and goes leaves holes."""


@dataclass(frozen=True, slots=True)
class NativeStack:
    """What one call of malloc left: bytes in all, the line of tested code that it is below, and native functions."""

    size_bytes: int
    frame: Frame
    functions: tuple[str, ...]


class NativeStacks:
    """Names where the C heap grows."""

    def __init__(self, owners: Owners, rounds: Rounds, budget: Budget, readings: Readings) -> None:
        self._owners = owners
        self._readings = readings
        self._rounds = rounds
        self._budget = budget

    def named(self, growths: Sequence[Growth], sites: Sequence[Site]) -> tuple[Growth, ...]:
        """Return the growths; that of the C heap with its line and native functions, where they can be found.

        If no other line loses native memory than those that keep Python's, their objects hold it: one leak.
        """
        heap = next((growth for growth in growths if growth.quantity == HEAP), None)
        if heap is None:
            return tuple(growths)
        found = self._leaking()
        if not found:
            frame = self._losing_line(heap.per_round)
            named = heap if frame is None else replace(heap, origin=frame_text(frame))
            return tuple(named if growth is heap else growth for growth in growths)
        known = {site.frame for site in sites}
        found.sort(key=lambda stack: (stack.frame in known, -stack.size_bytes))
        text = "\n".join(f"native code: {' < '.join(stack.functions)}" for stack in found[:SHOWN])
        holder = next((growth for growth in growths if growth.quantity.family == PYTHON), None)
        if holder is not None and all(stack.frame in known for stack in found):
            grows = f"at the same time, the C heap grows by {heap.per_round:,.0f} bytes per round"
            held = _with_evidence(holder, holder.evidence, grows, heap.evidence, text)
            return tuple(held if growth is holder else growth for growth in growths if growth is not heap)
        named = replace(_with_evidence(heap, text, heap.evidence), origin=frame_text(found[0].frame))
        return tuple(named if growth is heap else growth for growth in growths)

    def _leaking(self) -> list[NativeStack]:
        """Run rounds under the tracker, if it is there and works; return what they left once a run, or more often."""
        if importlib.util.find_spec("memray") is None:
            return []
        is_slow = ROUNDS * self._budget.elapsed_seconds / self._rounds.count > SECONDS_MAX
        count = ROUNDS_LEAST if is_slow else ROUNDS
        runs_before = self._rounds.runs
        folder = tempfile.mkdtemp()
        try:
            import memray

            name = f"{folder}/allocations"
            with memray.Tracker(name, native_traces=True):
                for _ in range(count):
                    self._rounds.repeat()
                collect_garbage()  # a cycle is no leak, but its blocks are still there
            records = memray.FileReader(name).get_leaked_allocation_records(merge_threads=True)
            runs = self._rounds.runs - runs_before
            return [found for record in records if (found := self._stack(record, runs)) is not None]
        except Stopped:  # the verdict stands: it was found before
            return []
        except (ImportError, OSError, RuntimeError):  # it does not run here, or the run is tracked already
            return []
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _losing_line(self, per_round: float) -> Frame | None:
        """Run a few rounds; return the line of tested code that adds to the C heap what is lost, if one alone does."""
        heap = self._readings.meter(C_HEAP)
        counted = Counts(lambda: (heap.read()[HEAP],))
        try:
            company = Company(may_begin=False)
            changed = LineWatch(self._owners, counted, company, cost=COUNTING_COST).watch(self._rounds.repeat)
        except Stopped:
            return None
        adding = [each.frame for each in changed if abs(each.change / LINE_ROUNDS - per_round) <= MARGIN * per_round]
        return adding[0] if len(adding) == 1 else None

    def _stack(self, record: Any, runs: int) -> NativeStack | None:
        if record.n_allocations < runs:  # a table that grew now and then, or a cache that was filled
            return None
        native = [function for function in _functions(record) if function]
        owner = self._owners.owner([(name, line) for _, name, line in record.stack_trace()] or [("", 0)])
        if not native or native[0].startswith(OF_PYTHON) or owner is None or not owner[0]:
            return None
        return NativeStack(record.size, owner, tuple(native[:SHOWN]))


def _with_evidence(growth: Growth, *texts: str) -> Growth:
    return replace(growth, evidence="\n".join(filter(None, texts)))


def _functions(record: Any) -> list[str]:
    """Return the native functions of a record up to the first of Python, the innermost first."""
    found = []
    of_python = {(function, name) for function, name, _ in record.stack_trace()}
    for function, name, line in record.hybrid_stack_trace():
        if (function, name) in of_python:
            break
        if function != UNKNOWN:
            found.append(f"{function} ({name}:{line})" if name != UNKNOWN else function)
    return found
