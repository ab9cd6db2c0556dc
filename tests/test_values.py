"""The values: frozen, comparable, hashable, with the numbers that the vendors' headers share."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from quiesce.model import operations as ops
from quiesce.model.gauges import Gauge, Source, best_reading
from quiesce.model.observations import DEFAULT_STREAM, BackingAllocated, Observation
from quiesce.model.operations import MemoryKind, Operation
from quiesce.model.outcomes import ERROR_CODES, Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported, describe
from quiesce.model.requests import is_slot

VALUES = [*get_args(Operation), *get_args(Outcome), *get_args(Observation)]


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_a_value_is_frozen_slotted_and_documented(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(kind)
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}(")


def test_no_two_values_share_a_name() -> None:
    names = [kind.__name__ for kind in VALUES]
    assert len(set(names)) == len(names)


def test_values_are_compared_by_what_they_say() -> None:
    assert ops.Allocate("a", 1) == ops.Allocate("a", 1, MemoryKind.DEVICE)
    values: set[Operation] = {
        ops.Free("a"),
        ops.Free("a"),
        ops.Free("a", "s"),
        ops.DestroyPool("a"),
        ops.DestroyEvent("a"),
    }
    assert len(values) == 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        ops.Free("a").slot = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Allocated(4096), "allocated"),
        (Done(), "done"),
        (OutOfMemory(), "out of memory"),
        (Rejected("not-ready"), "rejected not-ready"),
        (Unsupported(), "unsupported"),
        (Unsupported("no pool"), "unsupported (no pool)"),
    ],
)
def test_outcomes_are_said_in_the_words_of_case_files(outcome: Outcome, text: str) -> None:
    assert describe(outcome) == text


def test_error_codes_have_the_numbers_of_cuda_and_hip() -> None:
    assert ERROR_CODES["invalid-value"] == 1
    assert ERROR_CODES["invalid-handle"] == 400
    assert ERROR_CODES["illegal-state"] == 401
    assert ERROR_CODES["not-ready"] == 600
    assert ERROR_CODES["capture-unsupported"] == 900
    assert ERROR_CODES["capture-invalidated"] == 901
    assert ERROR_CODES["capture-merge"] == 902
    assert ERROR_CODES["capture-unjoined"] == 904
    assert ERROR_CODES["capture-isolation"] == 905
    assert ERROR_CODES["capture-implicit"] == 906
    assert ERROR_CODES["captured-event"] == 907
    numbers = [number for number in ERROR_CODES.values() if number is not None]
    assert len(set(numbers)) == len(numbers)


def test_cumulative_gauges_and_those_in_bytes_are_told_apart() -> None:
    assert {gauge for gauge in Gauge if gauge.cumulative} == {Gauge.COST, Gauge.BACKING_CALLS}
    assert {gauge for gauge in Gauge if gauge.in_bytes} == {Gauge.LIVE, Gauge.RESERVED, Gauge.PINNED}


def test_the_ledgers_reading_is_better_than_the_claim() -> None:
    claim, ledger = (Gauge.RESERVED, Source.CLAIM), (Gauge.RESERVED, Source.LEDGER)
    assert best_reading({claim: 7, ledger: 0}, Gauge.RESERVED) == 0
    assert best_reading({claim: 7}, Gauge.RESERVED) == 7
    assert best_reading({claim: 7}, Gauge.LIVE) is None


def test_the_default_stream_and_a_librarys_own_things_have_no_slot_name() -> None:
    assert not is_slot(DEFAULT_STREAM)
    assert not is_slot("internal:7")
    assert BackingAllocated(1, 2).kind is MemoryKind.DEVICE
