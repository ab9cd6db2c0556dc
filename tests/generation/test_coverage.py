"""Campaigns reach the deep states: which action met which state, with a fixed seed."""

from __future__ import annotations

import json
from functools import cache

import pytest

from quiesce.allocators.generation.campaign import run_campaign
from quiesce.allocators.generation.coverage import ACTIONS, STATES, Coverage
from quiesce.backends.reference import backend as reference

DEEP = ("full", "holes", "pending", "busy", "merged", "capture", "freed")
WITH_MEMORY = ("Allocate", "Free", "Launch", "Copy", "Trim", "DestroyStream", "RecordEvent", "WaitEvent")


@cache
def reached(hostile: bool) -> Coverage:
    return run_campaign(reference(), seed=6, operations=12_000, hostile=hostile).coverage


@pytest.mark.parametrize("hostile", [False, True], ids=["valid", "hostile"])
def test_every_action_is_exercised(hostile: bool) -> None:
    assert reached(hostile).actions() == ACTIONS


@pytest.mark.parametrize("state", DEEP)
def test_whatever_touches_memory_meets_each_deep_state(state: str) -> None:
    coverage = reached(hostile=True)
    assert [action for action in WITH_MEMORY if not coverage.pairs[action, state]] == []


@pytest.mark.parametrize(
    ("state", "share"), [("full", 0.05), ("holes", 0.3), ("pending", 0.2), ("merged", 0.05), ("freed", 0.005)]
)
def test_deep_states_are_no_accident(state: str, share: float) -> None:
    coverage = reached(hostile=False)
    asked = sum(coverage.pairs["Allocate", each] for each in ("empty", "few", "many"))
    assert coverage.pairs["Allocate", state] >= share * asked


def test_nearly_every_pair_is_reached() -> None:
    assert len(reached(hostile=True).pairs) >= 0.95 * len(ACTIONS) * len(STATES)


def test_the_table_says_what_was_not_reached() -> None:
    coverage = Coverage()
    coverage.pairs["Allocate", "empty"] = 12
    lines = coverage.table().splitlines()
    assert lines[1].split() == ["Allocate", "12", *["."] * (len(STATES) - 1)]
    assert lines[-1] == f"1 of {len(STATES)} pairs of 1 action and {len(STATES)} states reached"


def test_counts_are_plain_data() -> None:
    counts = json.loads(json.dumps(reached(hostile=False).counts()))
    assert counts["Allocate"].keys() == STATES.keys()
    assert counts["Allocate"]["few"] > 0
