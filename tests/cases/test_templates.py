from __future__ import annotations

import pytest

from quiesce.allocators.cases.case import Comparison, ExpectGauge, ExpectGrowth, Repeat, Request
from quiesce.allocators.cases.expansion import (
    OperationReader,
    evaluate_offset,
    located,
    mentioned,
    resolve_expectation,
    templates_of,
)
from quiesce.model.gauges import Gauge
from quiesce.model.operations import Allocate, Free


def test_variables_are_found_as_whole_names() -> None:
    assert mentioned("a[i+1] = allocate 4KiB*jj", ("j", "i", "jj")) == ("i", "jj")
    assert mentioned("trim pinned", ("i", "n")) == ()


def test_a_reader_knows_constant_and_varying_templates_apart() -> None:
    reader = OperationReader()
    assert reader.read("free a", {"i": 1}) is reader.read("free a", {"i": 2})
    read = [reader.read("a[i] = allocate 1KiB*i", {"i": value}) for value in (1, 2)]
    assert read == [Allocate("a[1]", 1024), Allocate("a[2]", 2048)]
    assert reader.read("free i", {}) == reader.read("free i", {"i": 7}) == Free("i")


@pytest.mark.parametrize(("value", "offset"), [("2KiB*i", 6144), ("-2KiB*i", -6144), ("0", 0)])
def test_offsets_have_a_sign(value: str, offset: int) -> None:
    assert evaluate_offset(value, {"i": 3}) == offset


def test_an_expectation_is_resolved_with_its_mark() -> None:
    expectation = ExpectGauge(Gauge.LIVE, Comparison.EQUAL, "1*i", "m[i]", 4)
    assert resolve_expectation(expectation, {"i": 3}) == (
        ExpectGauge(Gauge.LIVE, Comparison.EQUAL, "1*i", "m[3]", 4),
        3,
    )


def test_every_template_below_a_statement_is_found() -> None:
    gauge = ExpectGauge(Gauge.LIVE, Comparison.EQUAL, "1*i", "m[j]", 3)
    loop = Repeat(3, "i", (Request("trim", None, 2), gauge, ExpectGrowth(Gauge.LIVE, 0, 0, 4)), 1)
    assert list(templates_of(loop)) == ["trim", "1*i m[j]"]


def test_the_iteration_is_named_where_there_is_one() -> None:
    assert located("it broke", {"i": 3, "j": 0}) == "it broke (with i = 3, j = 0)"
    assert located("it broke", {}) == "it broke"
