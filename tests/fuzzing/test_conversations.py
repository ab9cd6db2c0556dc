"""Whoever speaks with quiesce may say anything: drivers of the wire protocol, clients of the compiler, reports."""

from __future__ import annotations

import pytest
from tests.fuzzing.limits import fuzz


def test_drivers_that_send_anything_have_results() -> None:
    fuzz("drivers", 25)


def test_clients_of_the_compiler_that_send_anything_are_answered_or_leave() -> None:
    pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")
    fuzz("compiler_clients", 200)


def test_damaged_reports_are_read_or_refused_in_a_sentence() -> None:
    fuzz("reports", 60)
