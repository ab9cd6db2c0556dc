"""What leak checks read of a process's own machine: how much there is on each device, where from, and the peak."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from quiesce.leaks.judgement import Outcome
from quiesce.leaks.meters.ledger import (
    KINDS,
    NOWHERE,
    ROUNDS,
    LedgerMeter,
    LedgerPlaces,
    Located,
    ledger_meters,
    own_machine,
)
from quiesce.leaks.meters.peaks import measure_peaks
from quiesce.leaks.quantities import DEVICE, EVENTS, IN_LEDGER, PINNED, PYTHON, STREAMS, Quantity
from quiesce.simulator.runtime.launch import SETTINGS_VARIABLE
from quiesce.simulator.runtime.own_machine import OwnMachine

from .conftest import Client, Start

Meters = dict[str, LedgerMeter]
MIB = 1 << 20


def meters_of(devices: int = 1, settle: Callable[[], None] = lambda: None) -> Meters:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTINGS_VARIABLE, f"flavour=cuda;version=12;devices={devices}")
        made = ledger_meters(OwnMachine(), settle)
    return {meter.family: meter for meter in made}


def read(meters: Meters, family: str) -> list[int]:
    return list(meters[family].read().values())


def test_a_process_has_a_machine_under_exec_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    assert own_machine() is None
    monkeypatch.setenv(SETTINGS_VARIABLE, "flavour=cuda;version=12")
    assert own_machine() is not None
    assert all(len(meter.read()) == 1 for meter in ledger_meters(OwnMachine(), lambda: None))


def test_there_is_a_meter_for_each_family() -> None:
    assert [kind.family for kind in KINDS] == list(IN_LEDGER)
    things = [thing for kind in KINDS for thing in kind.things]
    assert len(things) == len(set(things))


def test_what_is_live_counts_by_its_family(start: Start) -> None:
    meters = meters_of()
    assert read(meters, DEVICE) == [0], "before there is a machine"
    client = start()
    block, pinned, stream = client.make("Malloc", 1000), client.make("MallocHost", 64), client.make("StreamCreate")
    assert {name: read(meters, name) for name in meters if any(read(meters, name))} == {
        DEVICE: [1000],
        PINNED: [64],
        STREAMS: [1],
    }
    client.ok("Free", block)
    client.ok("FreeHost", pinned)
    client.ok("StreamDestroy", stream)
    assert not any(any(read(meters, name)) for name in meters)


def test_each_device_counts_for_itself(start: Start) -> None:
    client, meters = start(devices=3), meters_of(3)
    client.make("Malloc", 100)
    client.ok("SetDevice", 2)
    client.make("Malloc", 20)
    client.make("Malloc", 3)
    client.make("EventCreate")
    assert read(meters, DEVICE) == [100, 0, 23]
    assert read(meters, EVENTS) == [0, 0, 1]
    assert read(meters, STREAMS) == [0, 0, 0]
    assert [each.name for each in meters[DEVICE].read()] == [f"device memory on device {n}" for n in range(3)]


def test_a_library_gives_back_its_pools_before_memory_is_counted() -> None:
    settled: list[str] = []
    meters = meters_of(settle=lambda: settled.append("pools"))
    for family in (STREAMS, DEVICE):
        assert meters[family].absent() == meters[family].origin(*meters[family].read()) == ""
        meters[family].settle()
    assert settled == ["pools"]


# -- places ------------------------------------------------------------------------------------------------------------


def located(families: tuple[str, ...], run_round: Callable[[], None]) -> tuple[Located, list[Quantity]]:
    meters = meters_of()
    quantities = [next(iter(meters[family].read())) for family in families]
    places = LedgerPlaces(list(meters.values()), quantities)
    return places.watch(run_round, lambda: None), quantities


def test_a_process_without_a_machine_has_no_places() -> None:
    assert located((DEVICE,), lambda: None)[0] is NOWHERE


def leave(client: Client, rounds: list[int]) -> None:
    """Leave a stream in each round, memory by two calls, and by a third in the first round only."""
    number = len(rounds)
    rounds.append(number)
    client.make("StreamCreate")
    client.make("Malloc", 100)
    client.make("Malloc", 100)
    if number == 0:
        client.make("MallocManaged", 64, 1)
    if number % 2:
        client.make("MallocAsync", 8, None)
    client.ok("Free", client.make("Malloc", 5))


def test_what_each_round_leaves_is_told_by_place(start: Start) -> None:
    client = start()
    client.make("Malloc", 7)  # before the rounds
    rounds: list[int] = []
    found, (device, streams) = located((DEVICE, STREAMS), lambda: leave(client, rounds))
    assert len(rounds) == ROUNDS
    assert [(place.site.call, place.count, place.size_bytes, place.rounds) for place in found.places[device]] == [
        ("cudaMalloc", 2 * ROUNDS, 200 * ROUNDS, ROUNDS),
        ("cudaMallocAsync", ROUNDS // 2, 8 * ROUNDS // 2, ROUNDS // 2),
    ]
    assert found.evidence(device).splitlines() == [
        "cudaMalloc: 16 still live from 8 of the 8 rounds in which calls were traced, 1,600 bytes in all",
        "cudaMallocAsync: 4 still live from 4 of the 8 rounds in which calls were traced, 32 bytes in all",
    ]
    assert found.evidence(streams) == "cudaStreamCreate: 8 still live from 8 of the 8 rounds in which calls were traced"
    assert [site.role for site in found.call_sites(device)] == ["allocated by", "allocated by"]
    assert [site.role for site in found.call_sites(streams)] == ["created by"]
    assert found.origin(streams).startswith("cudaStreamCreate")
    assert found.lines() == frozenset(), "no stacks were kept"
    other = Quantity(EVENTS, "events", "events")
    assert (found.origin(other), found.evidence(other), found.call_sites(other)) == ("", "", ())


def test_what_warms_up_or_comes_seldom_is_no_place(start: Start) -> None:
    client = start()
    rounds = itertools.count()

    def run_round() -> None:
        number = next(rounds)
        client.make("Malloc", 1)
        if number < 3:
            client.make("MallocAsync", 1 << 20, None)

    found, (device,) = located((DEVICE,), run_round)
    assert [place.site.call for place in found.places[device]] == ["cudaMalloc"]


# -- peaks -------------------------------------------------------------------------------------------------------------


def test_the_peak_of_device_memory_is_what_a_round_adds_at_most(start: Start) -> None:
    client = start()
    client.make("Malloc", 5 * MIB)

    def run_round() -> Outcome:
        first = client.make("Malloc", MIB)
        client.make("MallocHost", 9 * MIB)
        client.ok("Free", client.make("Malloc", 2 * MIB))
        client.ok("Free", first)
        client.make("Malloc", MIB // 2)
        return Outcome.PASSED

    assert measure_peaks(run_round, (DEVICE,), OwnMachine()).bytes_by_gauge == {DEVICE: 3 * MIB}
    assert measure_peaks(run_round, (), OwnMachine()).bytes_by_gauge == {}


@pytest.mark.parametrize("gauges", [(DEVICE,), (PYTHON, DEVICE)])
def test_a_peak_is_not_known_where_calls_were_overwritten(gauges: tuple[str, ...], start: Start) -> None:
    client = start(ring=16)

    def run_round() -> Outcome:
        for _ in range(20):
            client.ok("Free", client.make("Malloc", MIB))
        return Outcome.PASSED

    peaks = measure_peaks(run_round, gauges, OwnMachine())
    assert "calls were overwritten" in peaks.unknown
    assert set(peaks.bytes_by_gauge) == set(gauges) - {DEVICE}


def test_there_is_no_peak_without_a_machine() -> None:
    assert measure_peaks(lambda: Outcome.PASSED, (DEVICE,), OwnMachine()).bytes_by_gauge == {DEVICE: 0}
