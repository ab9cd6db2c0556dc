"""Attention: what is looked at, and what of a dead subject is not."""

from __future__ import annotations

import pytest
from tests.conformance import backends as faults

from quiesce.allocators.conformance.monitor import Attentive, Notebook
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import BackendFault, Capability, DeviceProfile, Flavour
from quiesce.model.operations import Allocate, Free, Mark
from quiesce.model.rules import GAUGES_READ, LEDGER_FITS


def test_a_dead_subject_is_not_blamed_for_having_no_gauges() -> None:
    notebook = Notebook()
    context = Attentive(faults.Altered(wrapping=faults.DiesAtAFree), notebook).open(DeviceProfile())
    with pytest.raises(BackendFault):
        context.perform(Free("a"))
    context.close()
    assert notebook.findings(GAUGES_READ) == ()


def test_one_that_is_alive_is() -> None:
    notebook = Notebook()
    backend = faults.reading(lambda readings: {})
    Attentive(backend, notebook).open(DeviceProfile()).close()
    assert notebook.findings(GAUGES_READ)


def test_an_interrupt_takes_a_reply_along_and_the_rest_of_the_ledger_is_let_be() -> None:
    notebook = Notebook()
    context = Attentive(faults.Altered(wrapping=faults.IsInterruptedAtAnAllocation), notebook).open(DeviceProfile())
    context.perform(Mark("begun"))
    context.readings()
    with pytest.raises(KeyboardInterrupt):
        context.perform(Allocate("a", 512))
    context.close()  # frees what nobody read that it was allocated
    assert notebook.findings(LEDGER_FITS) == ()


def test_a_flavour_counts_as_exercised_once_something_ran_on_it() -> None:
    notebook = Notebook()
    watched = Attentive(reference(), notebook)
    watched.open(DeviceProfile())
    assert not notebook.served[Capability.FLAVOUR]
    watched.open(DeviceProfile(flavour=Flavour.HIP))
    assert notebook.served[Capability.FLAVOUR]
