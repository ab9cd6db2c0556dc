"""Orders of blocks and threads: kernels whose results depend on them are found, and others are not."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import INDEX

from quiesce.model.findings import Finding
from quiesce.model.program_rules import KERNELS_ANY_ORDER, KERNELS_INSIDE
from quiesce.simulator.kernels.server import ONE_BY_ONE_VARIABLE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]

LAST_ONE = INDEX + "st.global.u32 [%rd1], %r1;"
OWN_WORD = INDEX + "add.u64 %rd1, %rd1, %rd9;\nst.global.u32 [%rd1], %r1;"
NEIGHBOUR = (
    INDEX
    + "add.u64 %rd1, %rd1, %rd9;\nld.global.u32 %r5, [%rd1];\nadd.u32 %r5, %r5, %r1;\nst.global.u32 [%rd1+4], %r5;"
)
SUM = INDEX + "atom.global.add.u32 %r5, [%rd1], %r1;"
TICKET = INDEX + "atom.global.add.u32 %r5, [%rd1], 1;\nadd.u64 %rd1, %rd1, %rd9;\nst.global.u32 [%rd1+4], %r5;"
FLOATS = INDEX + (
    "setp.eq.u32 %p1, %r1, 0;\nselp.f32 %f1, 0f4CBEBC20, 0f3F800000, %p1;\n"  # 100,000,000 and 1
    "atom.global.add.f32 %f2, [%rd1], %f1;"
)
CLOCK = "mov.u64 %rd5, %clock64;\nst.global.u64 [%rd1], %rd5;"
BARRIER = "bar.sync 0;\n"


@pytest.mark.parametrize(
    ("body", "grid", "block"),
    [
        (LAST_ONE, 4, 1),
        (LAST_ONE, 1, 4),
        (BARRIER + LAST_ONE, 1, 4),
        (BARRIER + LAST_ONE, 1, 96),
        (BARRIER + LAST_ONE, 4, 1),
        (NEIGHBOUR, 1, 16),
        (TICKET, 4, 4),
        (FLOATS, 4, 16),
    ],
)
def test_results_that_depend_on_the_order(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch, body: str, grid: int, block: int
) -> None:
    monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")  # as exploring runs threads, where rows take them in step
    usual, given = checked(), checked
    expected = _left(usual, body, grid, block)
    usual.client.machine.close()
    exploring = given(orders=4)
    assert _left(exploring, body, grid, block) == expected, "the program gets the bytes of the order of numbers"
    (finding,) = _about_order(exploring)
    assert (finding.rule, finding.request, finding.seen) == (KERNELS_ANY_ORDER, "work", 1)
    assert "different if its blocks and threads run in another order" in finding.observed
    assert [site.role for site in finding.call_sites] == ["allocated by", "launched by"]


@pytest.mark.parametrize(
    ("body", "grid", "block"),
    [
        (OWN_WORD, 8, 8),
        (BARRIER + OWN_WORD, 1, 96),
        (BARRIER + OWN_WORD, 4, 40),
        (SUM, 4, 16),
        (BARRIER + SUM, 4, 16),
        (NEIGHBOUR, 1, 1),
        (CLOCK, 1, 1),
    ],
)
def test_results_that_do_not(checked: MakeDevice, body: str, grid: int, block: int) -> None:
    given = checked(orders=5)
    _left(given, body, grid, block)
    assert given.rules() == []


def _about_order(given: Checked) -> list[Finding]:
    """Return what was found, without the races that results depend on as well."""
    return [each for each in given.findings() if each.rule == KERNELS_ANY_ORDER]


def _left(given: Checked, body: str, grid: int, block: int) -> list[int]:
    words = given.words(*range(200))
    given.work(body, words, grid=grid, block=block)
    return given.read(words, 200)


@pytest.mark.parametrize("kind", ["managed", "pinned"])
def test_memory_that_the_host_shares(checked: MakeDevice, kind: str) -> None:
    given = checked(orders=2)
    made = ("MallocManaged", 64, 1) if kind == "managed" else ("HostAlloc", 64, 0)
    address = given.client.make(*made)
    given.work(LAST_ONE, address, grid=4)
    assert len(_about_order(given)) == 1
    assert ctypes.c_uint32.from_address(address).value == 3


def test_a_wrong_access_is_counted_once(checked: MakeDevice) -> None:
    given = checked(orders=4)
    given.work(OWN_WORD, given.words(*range(3)), grid=2, block=2)
    (finding,) = given.findings()
    assert (finding.rule, finding.seen) == (KERNELS_INSIDE, 1)


def test_launches_that_depend_are_counted(checked: MakeDevice) -> None:
    given = checked(orders=3)
    words = given.words(1)
    for _ in range(3):
        given.work(LAST_ONE, words, grid=4)
    findings = _about_order(given)
    assert sum(finding.seen for finding in findings) == 3


def test_a_seeded_schedule_has_an_order_of_its_own(checked: MakeDevice) -> None:
    def last(seed: int) -> list[int]:
        given = checked(schedule="seeded", seed=seed)
        words = given.words(0)
        given.work(LAST_ONE, words, grid=64)
        given.client.ok("DeviceSynchronize")
        left = given.read(words, 1)
        given.client.machine.close()
        return left

    orders = [last(seed) for seed in range(8)]
    assert len(set(map(tuple, orders))) > 4
    assert orders == [last(seed) for seed in range(8)]
