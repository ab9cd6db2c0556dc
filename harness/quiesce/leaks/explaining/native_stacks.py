"""Where native code asks for memory that it never frees: memray says it, where it is installed.

A few more rounds are run under its tracker, once the verdict is there. It follows malloc from the outside, and unwinds
the stack of each call.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from quiesce.leaks.judgement import Growth
from quiesce.leaks.meters.memory import HEAP
from quiesce.leaks.meters.tracing import Site
from quiesce.leaks.owners import Frame, Owners, frame_text
from quiesce.leaks.stages.rounds import Budget, Rounds, Stopped

ROUNDS: Final = 8
ROUNDS_LEAST: Final = 2  # where they take long
SECONDS_MAX: Final = 1.0
SHOWN: Final = 3

OF_PYTHON: Final = ("PyMem_", "_PyMem_", "PyObject_", "_PyObject_")
"""How the functions of Python's own allocators begin: their callers are known from Python's traces."""

UNKNOWN: Final = "<unknown>"


@dataclass(frozen=True, slots=True)
class NativeStack:
    """What one call of malloc left: bytes in all, the line of tested code that it is below, and native functions."""

    size_bytes: int
    frame: Frame
    functions: tuple[str, ...]


class NativeStacks:
    """Names where the C heap grows."""

    def __init__(self, owners: Owners, rounds: Rounds, budget: Budget) -> None:
        self._owners = owners
        self._rounds = rounds
        self._budget = budget

    def named(self, growths: Sequence[Growth], sites: Sequence[Site]) -> tuple[Growth, ...]:
        """Return the growths; that of the C heap with its line and native functions, where they can be found."""
        if all(growth.quantity != HEAP for growth in growths):
            return tuple(growths)
        found = self._leaking()
        known = {site.frame for site in sites}
        found.sort(key=lambda stack: (stack.frame in known, -stack.size_bytes))
        if not found:
            return tuple(growths)
        text = "\n".join(f"native code: {' < '.join(stack.functions)}" for stack in found[:SHOWN])
        return tuple(
            replace(each, origin=frame_text(found[0].frame), evidence="\n".join(filter(None, [text, each.evidence])))
            if each.quantity == HEAP
            else each
            for each in growths
        )

    def _leaking(self) -> list[NativeStack]:
        """Run rounds under the tracker, if it is there and works; return what at least half of them left."""
        if importlib.util.find_spec("memray") is None:
            return []
        is_slow = ROUNDS * self._budget.elapsed_seconds / self._rounds.count > SECONDS_MAX
        count = ROUNDS_LEAST if is_slow else ROUNDS
        folder = tempfile.mkdtemp()
        try:
            import memray

            name = f"{folder}/allocations"
            with memray.Tracker(name, native_traces=True):
                for _ in range(count):
                    self._rounds.repeat()
            records = memray.FileReader(name).get_leaked_allocation_records(merge_threads=True)
            return [found for record in records if (found := self._stack(record, count)) is not None]
        except Stopped:  # the verdict stands: it was found before
            return []
        except (ImportError, OSError, RuntimeError):  # it does not run here, or the run is tracked already
            return []
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _stack(self, record: Any, rounds: int) -> NativeStack | None:
        if record.n_allocations * 2 < rounds:
            return None
        native = [function for function in _functions(record) if function]
        owner = self._owners.owner([(name, line) for _, name, line in record.stack_trace()] or [("", 0)])
        if not native or native[0].startswith(OF_PYTHON) or owner is None or not owner[0]:
            return None
        return NativeStack(record.size, owner, tuple(native[:SHOWN]))


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
