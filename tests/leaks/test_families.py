"""Each family of gauges has a row, which names the meter that counts it."""

from __future__ import annotations

import pytest

from quiesce.leaks.meters import meters_here
from quiesce.leaks.owners import Owners
from quiesce.leaks.quantities import FAMILIES, IN_LEDGER, REFERENCES, Surroundings, family_of
from quiesce.simulator.runtime.launch import SETTINGS_VARIABLE
from quiesce.simulator.runtime.own_machine import OwnMachine

NATIVE = ["c-heap", "anonymous-memory"]


def test_every_family_but_references_has_its_meters_and_the_heap_is_read_late() -> None:
    read = [meter.family for meter in meters_here(Surroundings(Owners([])))]
    assert sorted(read) == sorted({*FAMILIES} - {*IN_LEDGER, REFERENCES})
    assert read[-2:] == NATIVE


def test_a_simulated_machine_has_its_ledger_in_place_of_the_drivers_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTINGS_VARIABLE, "devices=1;folder=/nowhere")
    read = [meter.family for meter in meters_here(Surroundings(Owners([]), OwnMachine()))]
    assert {*IN_LEDGER} <= {*read}
    assert not {"free-memory", "anonymous-memory"} & {*read}


def test_what_a_test_counts_itself_has_no_rule() -> None:
    assert not family_of("own").is_coarse
    assert family_of("own").leak == ""
