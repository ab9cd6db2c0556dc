"""What leaks, one growth for each cause: where one follows from another, that is said of the other.

A pool of CuPy's that grows takes device memory; an object that is kept holds a stream of the runtime, and itself takes
memory of Python and of the C heap. What says most about the cause is the finding, and the rest is evidence for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.leaks.explaining.lines import Opened
from quiesce.leaks.judgement import Growth
from quiesce.leaks.meters.ledger import Located
from quiesce.leaks.meters.lists import IN_LISTS
from quiesce.leaks.meters.memory import chunk_bytes
from quiesce.leaks.meters.tracing import Site, Tracing, sites_text
from quiesce.leaks.meters.variables import IN_VARIABLES
from quiesce.leaks.owners import LIBRARY, Owners, frame_text
from quiesce.leaks.quantities import (
    ANONYMOUS,
    C_HEAP,
    CONTEXTS,
    DESCRIPTORS,
    DEVICE,
    FREE_MEMORY,
    IN_LEDGER,
    IN_POOLS,
    MANAGED,
    MODULES,
    OPENED,
    PINNED,
    PROCESSES,
    PYTHON,
    TASKS,
    THREADS,
    Quantity,
    leading,
)
from quiesce.leaks.readings import Readings
from quiesce.model.wording import singular

THREAD_BYTES: Final = 16 << 10
"""What a thread takes of the C heap at most, in glibc and in CPython: both take some kilobytes."""

NOISE_BYTES: Final = 512
"""What a descriptor may take besides, as the name of a file."""

BLOCK_BYTES: Final = chunk_bytes(1)
"""The least that malloc takes for a block. What grows by less in a run loses no block in each."""

PYTHON_BYTES: Final = Quantity(PYTHON, "Python's memory")


class Causes:
    """Tells them of one check, which ends with what is ``left`` and the ``sites`` that keep ever more."""

    def __init__(
        self,
        readings: Readings,
        tracing: Tracing,
        left: Sequence[Quantity],
        sites: Sequence[Site],
        located: Located,
        opened: Opened,
        owners: Owners,
    ) -> None:
        self._readings = readings
        self._tracing = tracing
        self._left = left
        self._sites = sites
        self._located = located
        self._opened = opened
        self._owners = owners
        self._counted = [quantity for quantity in left if quantity.family in IN_LEDGER]
        self._holds = [quantity for quantity in left if quantity.family in (*IN_POOLS, *IN_LEDGER, *OPENED)]
        self._pooled = [quantity for quantity in self._counted if self._is_pooled(quantity.family)]
        self._with_it = self._sites_with_it()
        self._alone = [site for site in sites if site not in self._with_it]

    def growths(self, endured: int, untraced: int) -> tuple[Growth, ...]:
        """Return them. The readings ended behind round ``endured``, and behind round ``untraced`` the traces began.

        The C heap comes after lines of Python: it has no line yet, and often it grows with what these lines keep.
        """
        quantities = leading([*filter(self._is_told, self._left), *([PYTHON_BYTES] if self._alone else [])])
        if self._alone:
            quantities.sort(key=lambda each: each.family == C_HEAP)
        return tuple(
            self._traced_growth(untraced) if each == PYTHON_BYTES else self._growth(each, endured)
            for each in quantities
        )

    def _is_told(self, quantity: Quantity) -> bool:
        if quantity in self._counted:
            return quantity not in self._pooled and not self._is_of_modules(quantity)
        if quantity.family == ANONYMOUS:
            return self._is_mapped_alone()
        if quantity.family == FREE_MEMORY:
            return not any(each.family in (CONTEXTS, *IN_POOLS) for each in self._left)
        if quantity.family == DESCRIPTORS:
            return not self._comes_with_others(quantity)
        if quantity.family == PYTHON:
            return not self._with_it or bool(self._alone)
        if quantity.family == C_HEAP:
            is_known = bool(self._holds) and not self._is_more_than_threads_take(quantity)
            return not is_known and not self._is_mapped_alone() and not self._is_less_than_a_block(quantity)
        return True

    def _is_mapped_alone(self) -> bool:
        """Whether mappings are all that grows, but for a smaller part of the C heap: what manages them is there."""
        if self._sites or any(quantity.family not in (C_HEAP, ANONYMOUS) for quantity in self._left):
            return False
        mapped, on_heap = (
            sum(self._readings.growth(quantity) for quantity in self._left if quantity.family == family)
            for family in (ANONYMOUS, C_HEAP)
        )
        return mapped > on_heap

    def _is_less_than_a_block(self, heap: Quantity) -> bool:
        """Whether the C heap grows by less than a block a run next to lines of Python, as with tables that they fill.

        A native leak of the smallest blocks takes more, and so stays a finding of its own.
        """
        return bool(self._alone) and self._readings.growth(heap) < BLOCK_BYTES

    def _is_more_than_threads_take(self, heap: Quantity) -> bool:
        """Whether the C heap grows by more than what is opened takes of it, where nothing else holds any."""
        if any(quantity.family not in OPENED for quantity in self._holds):
            return False
        opened = sum(self._readings.growth(quantity) for quantity in self._holds if quantity.family == THREADS)
        known = sum(site.on_c_heap_per_round for site in self._with_it)
        return self._readings.growth(heap) > 2 * known + opened * THREAD_BYTES + NOISE_BYTES

    def _comes_with_others(self, descriptors: Quantity) -> bool:
        """Whether the line that opens descriptors starts what runs as well, as that of a server does."""
        opener = self._opened.origin(descriptors)
        started = (quantity for quantity in self._left if quantity.family in (THREADS, TASKS, PROCESSES))
        return opener is not None and any(self._opened.origin(each) == opener for each in started)

    def _is_of_modules(self, quantity: Quantity) -> bool:
        """Whether variables of modules are what grows: they go with these, and nobody asked for them."""
        families = {each.family for each in self._counted}
        return quantity.family in (DEVICE, MANAGED) and MODULES in families and not self._located.origin(quantity)

    def _is_pooled(self, family: str) -> bool:
        """Whether pools of libraries account for what grows of a kind of memory, or open contexts do."""
        if family not in (DEVICE, PINNED):
            return False
        grown = sum(self._readings.growth(quantity) for quantity in self._counted if quantity.family == family)
        return any(
            quantity.family in (*IN_POOLS, CONTEXTS)
            and quantity.unit == "bytes"
            and self._readings.growth(quantity) >= grown
            for quantity in self._left
        )

    def _sites_with_it(self) -> list[Site]:
        """Return the lines whose objects hold what grows of devices, as far as can be known: CuPy's arrays do."""
        if self._located.is_held or any(quantity.family in IN_POOLS for quantity in self._holds):
            return list(self._sites)
        lines = self._located.lines()
        return [site for site in self._sites if site.frame in lines or self._comes_with_what_was_opened(site)]

    def _comes_with_what_was_opened(self, site: Site) -> bool:
        return self._opened.comes_with(site.frame, is_library=self._owners.kind(site.frame[0]) == LIBRARY)

    def _traced_growth(self, untraced: int) -> Growth:
        sites = self._alone
        per_round = sum(site.bytes_per_round for site in sites)
        kept = self._tracing.kept_bytes(sites)
        evidence = "\n".join([sites_text(sites), *self._at_the_same_time(C_HEAP, ANONYMOUS)])
        return Growth(PYTHON_BYTES, per_round, kept, untraced + 1, str(sites[0]), evidence)

    def _growth(self, quantity: Quantity, endured: int) -> Growth:
        readings, runs = tuple(self._readings.values(quantity)), self._readings.runs(quantity)
        untold = endured - runs[-1] if runs else 0
        return Growth(
            quantity,
            self._readings.growth(quantity),
            readings,
            first_round=endured - len(readings) + 1,
            origin=self._origin(quantity),
            evidence=self._evidence(quantity),
            call_sites=tuple(site for each in self._behind(quantity) for site in self._located.call_sites(each)),
            rounds=tuple(run + untold for run in runs),
        )

    def _behind(self, quantity: Quantity) -> Sequence[Quantity]:
        """Return what the ledger counts of a quantity."""
        return [quantity] if quantity.family in IN_LEDGER else self._pooled if quantity.family in IN_POOLS else []

    def _origin(self, quantity: Quantity) -> str:
        """Say where growth comes from; what keeps a thing is often an object, and of objects the place is known."""
        if quantity.family in IN_LEDGER:
            return self._located.origin(quantity)
        opener = self._opened.origin(quantity)
        if opener is not None:
            return frame_text(opener)
        if self._sites and quantity.family not in (CONTEXTS, C_HEAP, *OPENED):
            return str(self._sites[0])
        behind = map(self._located.origin, self._behind(quantity))
        return self._readings.meter(quantity.family).origin(quantity) or next(filter(None, behind), "")

    def _evidence(self, quantity: Quantity) -> str:
        if quantity in (IN_LISTS, IN_VARIABLES):
            return "\n".join([sites_text(self._alone), *self._at_the_same_time(C_HEAP, ANONYMOUS)])
        if quantity not in self._holds:
            said = self._readings.meter(quantity.family).evidence(quantity)
            known = self._explained(quantity)
            return "\n".join(filter(None, [said, known, *self._at_the_same_time(ANONYMOUS, C_HEAP)]))
        behind = map(self._located.evidence, self._behind(quantity))
        opened = self._readings.meter(quantity.family).evidence(quantity) if quantity.family in OPENED else ""
        return "\n".join(filter(None, [opened, *behind, *self._also_grown(self._origin(quantity))]))

    def _explained(self, quantity: Quantity) -> str:
        """Say how much of the C heap's growth is that of Python's memory, which is a finding of its own."""
        known = self._tracing.usual_step_on_c_heap().per_round if self._alone and quantity.family == C_HEAP else 0.0
        return f"of this, Python's memory takes {known:,.0f} bytes per round" if known > 0 else ""

    def _rate(self, quantity: Quantity) -> str:
        growth = self._readings.growth(quantity)
        count = f"{growth:,.0f}" if growth >= 1 else f"{growth:.2f}"
        return f"{count} {singular(quantity.unit) if count == '1' else quantity.unit}"

    def _also_grown(self, origin: str) -> list[str]:
        """Return lines that say what grows with a thing that was made at ``origin``."""
        said = []
        if self._with_it:
            per_round = sum(site.bytes_per_round for site in self._with_it)
            lines = [line for line in sites_text(self._with_it).splitlines() if line != origin]
            introduction = f"at the same time, Python's memory grows by {per_round:,.0f} bytes per round"
            said = [f"{introduction}:" if lines else introduction, *lines]
        return said + self._at_the_same_time(C_HEAP, DESCRIPTORS, ANONYMOUS)

    def _at_the_same_time(self, *families: str) -> list[str]:
        """Return lines that say what grows of these families and is no finding of its own."""
        return [
            f"at the same time, {quantity.name} {_grows(quantity)} by {self._rate(quantity)} per round"
            for quantity in self._left
            if quantity.family in families and not self._is_told(quantity)
        ]


def _grows(quantity: Quantity) -> str:
    return "grow" if quantity.unit in quantity.name.split() else "grows"
