"""Plans of Fourier transforms: made in steps or at once, with a work area of their own or the client's."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import pytest
from tests.simulator.conftest import Start
from tests.simulator.test_library_handles import Handles

from quiesce.simulator.runtime.ledger import Seen, Thing

C2C, R2C, Z2Z = 0x29, 0x2A, 0x69
INVALID_PLAN, ALLOC_FAILED, INVALID_TYPE, INVALID_VALUE, INVALID_SIZE = 1, 2, 3, 4, 8
CAPACITY: Final = 1 << 20


class Plans(Handles):
    """Calls of cuFFT, whose plans are integers, or of hipFFT, whose plans are pointers."""

    def __init__(self, start: Start, flavour: str) -> None:
        super().__init__(start(flavour, recycle="never", capacity=CAPACITY))
        cuda = flavour.startswith("cuda")
        self.prefix = "simulated_cufft" if cuda else "simulated_hipfft"
        self.plan_type: Any = ctypes.c_int if cuda else ctypes.c_void_p

    def plan(self, function: str = "Create", *arguments: Any) -> Any:
        made = self.plan_type()
        assert self.call(function, ctypes.byref(made), *arguments) == 0
        return made

    def size(self, function: str, *arguments: Any) -> int:
        work = ctypes.c_size_t(7)
        assert self.call(function, *arguments, ctypes.byref(work)) == 0, function
        return work.value

    def used(self) -> int:
        return CAPACITY - self.free_bytes()


@pytest.fixture(params=["cuda:12", "hip:7"])
def plans(request: pytest.FixtureRequest, start: Start) -> Plans:
    return Plans(start, request.param)


def test_a_plan_allocates_its_work_area(plans: Plans) -> None:
    plan = plans.plan()
    assert plans.used() == 0
    assert plans.size("MakePlan1d", plan, 64, C2C, 16) == plans.size("GetSize", plan) == plans.used() == 64 * 16 * 8
    assert plans.live() == {Thing.FFT_PLAN: 1}
    assert plans.call("Destroy", plan) == 0
    assert (plans.live(), plans.used()) == ({}, 0)
    assert plans.call("Destroy", plan) == INVALID_PLAN
    assert plans.dead() == [Thing.FFT_PLAN]


def test_a_client_may_bring_the_work_area(plans: Plans) -> None:
    plan = plans.plan()
    assert plans.call("SetWorkArea", plan, ctypes.c_void_p(4096)) == INVALID_PLAN, "it is not made yet"
    assert plans.call("SetAutoAllocation", plan, 0) == 0
    size = plans.size("MakePlan2d", plan, 8, 16, Z2Z)
    assert (size, plans.used()) == (8 * 16 * 16, 0)
    area = plans.client.make("Malloc", size)
    assert plans.call("SetWorkArea", plan, ctypes.c_void_p(area)) == 0
    plans.client.ok("Free", area)
    assert plans.call("SetWorkArea", plan, ctypes.c_void_p(area)) == INVALID_VALUE
    small = plans.client.make("Malloc", size - 1)
    assert plans.call("SetWorkArea", plan, ctypes.c_void_p(small)) == INVALID_VALUE
    found = [record.seen for record in plans.client.seen(Seen.USED_AFTER_FREE, Seen.OUT_OF_BOUNDS)]
    assert found == [Seen.USED_AFTER_FREE, Seen.OUT_OF_BOUNDS]


def test_an_area_of_the_client_replaces_the_plans_own(plans: Plans) -> None:
    plan = plans.plan("Plan1d", 128, R2C, 1)
    size = plans.size("GetSize", plan)
    assert plans.used() == size == 1024
    area = plans.client.make("Malloc", size)
    assert plans.call("SetWorkArea", plan, ctypes.c_void_p(area)) == 0
    assert plans.used() == size


def test_plans_are_made_in_every_form(plans: Plans) -> None:
    lengths, wide = (ctypes.c_int * 3)(4, 8, 2), (ctypes.c_longlong * 3)(4, 8, 2)
    plain, one, far = (None, 1, 64, None, 1, 64), ctypes.c_longlong(1), ctypes.c_longlong(64)
    long = (None, one, far, None, one, far)
    assert plans.size("GetSize", plans.plan("Plan3d", 4, 8, 2, C2C)) == 64 * 8
    assert plans.size("GetSize", plans.plan("PlanMany", 3, lengths, *plain, C2C, 5)) == 64 * 5 * 8
    assert plans.size("MakePlanMany", plans.plan(), 3, lengths, *plain, Z2Z, 2) == 64 * 2 * 16
    assert plans.size("MakePlanMany64", plans.plan(), 3, wide, *long, C2C, ctypes.c_longlong(2)) == 64 * 2 * 8
    work, plan = ctypes.c_size_t(), plans.plan()
    layout = (None, one, one, 6, None, one, one, 6)
    assert plans.call("XtMakePlanMany", plan, 3, wide, *layout, one, ctypes.byref(work), 6) == 0
    assert work.value == 64 * 4, "of half precision"
    assert plans.size("Estimate1d", 10, C2C, 3) == plans.size("GetSize1d", plan, 10, C2C, 3) == 240


def test_a_plan_is_made_once(plans: Plans) -> None:
    plan = plans.plan("Plan1d", 8, C2C, 1)
    assert plans.call("MakePlan1d", plan, 8, C2C, 1, ctypes.byref(ctypes.c_size_t())) == INVALID_PLAN


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((8, 5, 1), INVALID_TYPE),
        ((0, C2C, 1), INVALID_SIZE),
        ((8, C2C, 0), INVALID_SIZE),
        ((CAPACITY, C2C, 1), ALLOC_FAILED),
    ],
)
def test_a_plan_that_can_not_be_made_leaves_nothing(plans: Plans, arguments: tuple[int, ...], status: int) -> None:
    assert plans.call("Plan1d", ctypes.byref(plans.plan_type()), *arguments) == status
    assert (plans.live(), plans.used()) == ({}, 0)


def test_a_plan_of_rocfft_names_its_work_area(start: Start) -> None:
    handles = Handles(start("hip:7", recycle="never"))
    lengths, one = (ctypes.c_size_t * 2)(32, 4), ctypes.c_size_t(1)
    plan = handles.make("rocfft_plan_create", 0, 0, 1, ctypes.c_size_t(2), lengths, one, None)
    size = ctypes.c_size_t()
    assert handles.call("rocfft_plan_get_work_buffer_size", plan, ctypes.byref(size)) == 0
    assert size.value == 32 * 4 * 16
    assert handles.call("rocfft_plan_destroy", plan) == 0
    assert handles.call("rocfft_plan_destroy", plan) == 2
    assert handles.dead() == [Thing.FFT_PLAN]
