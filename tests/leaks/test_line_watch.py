"""Which line opened what stays open, beside lines whose things somebody else gives back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import CodeType

import pytest

from quiesce.leaks.explaining.lines import ROUNDS, LineWatch, Things
from quiesce.leaks.meters.opened import DescriptorMeter
from quiesce.leaks.owners import Owners

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads descriptors where Linux lists them")

TESTED = "/project/test_it.py"
PLUGIN = "/plugins/pytest_loops.py"

CLOSED_BY_A_PLUGIN = """
closed += os.pipe()
kept.append(os.dup(0))
"""
CLOSING = """
while closed:
    os.close(closed.pop())
"""
GARBAGE = """
cycle = [open(os.devnull, 'rb')]
cycle.append(cycle)
del cycle
kept.append(os.dup(0))
"""


@pytest.fixture
def kept() -> Iterator[list[int]]:
    descriptors: list[int] = []
    yield descriptors
    for each in descriptors:
        os.close(each)


def lines_that_open(kept: list[int], *sources: CodeType) -> list[tuple[int, int]]:
    """Return the lines after which there were more descriptors for good, and how many more."""
    names = {"os": os, "closed": [], "kept": kept}

    def run_round() -> None:
        for source in sources:
            exec(source, names)

    watch = LineWatch(Owners([PLUGIN, __file__]), Things(DescriptorMeter().present))
    return [(each.frame[1], each.change) for each in watch.watch(run_round)]


def test_a_line_is_not_blamed_for_what_a_plugin_closes(kept: list[int]) -> None:
    tested, plugin = compile(CLOSED_BY_A_PLUGIN, TESTED, "exec"), compile(CLOSING, PLUGIN, "exec")
    assert lines_that_open(kept, tested, plugin) == [(3, ROUNDS)]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_line_is_not_blamed_for_garbage(kept: list[int]) -> None:
    assert lines_that_open(kept, compile(GARBAGE, TESTED, "exec")) == [(5, ROUNDS)]


def test_a_descriptor_that_takes_the_number_of_another_is_another(kept: list[int]) -> None:
    meter = DescriptorMeter()
    first, other = os.pipe()
    kept.append(other)
    before = meter.present()
    os.close(first)
    without = meter.present()
    assert len(before) == len(without) + 1
    kept.append(os.open("/dev/null", os.O_RDONLY))
    assert kept[1] == first
    (new,) = meter.present() - without
    assert new not in before
