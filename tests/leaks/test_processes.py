"""Child processes: those that run, and those that have ended and that nobody has waited for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quiesce.leaks.meters.opened import CHILDREN, ProcessMeter

pytestmark = pytest.mark.skipif(bool(ProcessMeter().absent()), reason="this system lists no processes")

ENDS_BY_ITSELF = [sys.executable, "-c", "input()"]


def test_a_child_counts_until_somebody_waits_for_it() -> None:
    meter = ProcessMeter()
    meter.observe()
    before = meter.read()[CHILDREN]
    with subprocess.Popen(ENDS_BY_ITSELF, stdin=subprocess.PIPE) as child:
        assert meter.read()[CHILDREN] == before + 1
        assert meter.origin(CHILDREN).startswith(f"process {child.pid} (")
        assert meter.evidence(CHILDREN).endswith(") is still running")
        child.kill()
        assert meter.read()[CHILDREN] == before + 1
    assert meter.read()[CHILDREN] == before
    assert meter.origin(CHILDREN) == ""


def test_what_is_forgotten_is_what_the_next_start_waits_for() -> None:
    meter = ProcessMeter()
    before = meter.read()[CHILDREN]
    child = subprocess.Popen(ENDS_BY_ITSELF, stdin=subprocess.PIPE)
    child.communicate(b"\n")
    meter.settle()
    assert meter.read()[CHILDREN] == before


def test_a_system_without_such_a_list_has_no_such_gauge() -> None:
    assert ProcessMeter("/no/such/folder").absent() == "this system lists no processes"
