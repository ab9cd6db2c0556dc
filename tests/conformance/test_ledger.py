"""The book of a ledger: what fits together is let be, also where the contract leaves a backend free."""

from __future__ import annotations

import pytest

from quiesce.allocators.conformance.monitor import NOTES_MAX, Book, Notebook
from quiesce.model.backend import Capability, Description
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import BackingAllocated, BackingFreed, EventWaited, Observation, StreamSynchronized
from quiesce.model.operations import MemoryKind
from quiesce.model.rules import LEDGER_FITS, OWN_NAMES

LEDGER = Description("mine", "1", frozenset({Capability.BACKING_LEDGER}))
CLAIM = Description("mine", "1", frozenset())
RESERVED = (Gauge.RESERVED, Source.LEDGER)


def book(*observations: Observation, description: Description = LEDGER, began: int | None = 0) -> Notebook:
    notebook = Notebook()
    written = Book(description, notebook)
    if began is not None:
        written.compare({RESERVED: began}, None)
    written.make(("s",))
    written.enter(observations, None)
    return notebook


@pytest.mark.parametrize(
    "observations",
    [
        (BackingAllocated(4096, 512), BackingFreed(4096, 512), BackingAllocated(4096, 512)),
        (BackingAllocated(4096, 512), BackingAllocated(4096, 512, device=1)),
        (BackingAllocated(4096, 512), BackingAllocated(4096, 512, MemoryKind.PINNED)),
        (BackingAllocated(4096, 0), BackingFreed(4096, 0)),
        (EventWaited("internal:7", "s"), StreamSynchronized(""), EventWaited("7", None)),
    ],
)
def test_what_fits_together_is_let_be(observations: tuple[Observation, ...]) -> None:
    notebook = book(*observations)
    assert notebook.findings(LEDGER_FITS) + notebook.findings(OWN_NAMES) == ()
    assert notebook.looked[LEDGER_FITS] + notebook.looked[OWN_NAMES] > 0


@pytest.mark.parametrize("observations", [(BackingFreed(4096, 512),), (BackingAllocated(4096, -1),)])
def test_what_does_not_is_noted(observations: tuple[Observation, ...]) -> None:
    assert len(book(*observations).findings(LEDGER_FITS)) == 1


def test_a_ledger_that_is_not_claimed_to_be_complete_may_be_partial() -> None:
    assert book(BackingFreed(4096, 512), description=CLAIM).findings(LEDGER_FITS) == ()


@pytest.mark.parametrize("began", [None, 1 << 20])
def test_memory_that_was_taken_before_anybody_looked_may_be_freed(began: int | None) -> None:
    assert book(BackingFreed(4096, 1 << 20), began=began).findings(LEDGER_FITS) == ()


def test_readings_add_up_from_nothing_or_from_the_first_reading() -> None:
    notebook = Notebook()
    written = Book(LEDGER, notebook)
    written.compare({RESERVED: 100}, None)  # taken when the context was opened
    written.enter((BackingAllocated(4096, 512),), None)
    written.compare({RESERVED: 612}, None)
    assert notebook.findings(LEDGER_FITS) == ()
    written.compare({RESERVED: 700}, None)
    assert [finding.observed for finding in notebook.findings(LEDGER_FITS)] == [
        "reserved of 700 by its ledger, 512 by what it observed"
    ]


def test_the_same_is_noted_once_and_the_rest_is_left_out() -> None:
    notebook = Notebook()
    notebook.place = "pool/trim"
    for number in range(100):
        notebook.note(LEDGER_FITS, number % 20, "write it", "wrong")
    assert len(notebook.findings(LEDGER_FITS)) == NOTES_MAX
    assert notebook.findings(LEDGER_FITS)[0].observed == "wrong, in pool/trim"
