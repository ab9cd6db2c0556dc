"""Shrinking: how short, how simple, what it never does, and what an interruption leaves."""

from __future__ import annotations

import pytest
from tests.oracle.strangers.faulty import FAULTY

from quiesce.allocators.cases.case import Repeat
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.cases.writer import write_case
from quiesce.allocators.generation.editing import alike, requests
from quiesce.allocators.generation.reshaping import (
    allocations,
    cases_without,
    larger_bodies,
    smaller_bodies,
    staged_bodies,
)
from quiesce.allocators.generation.shrinking import Known, shrink
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, BackendFault, Closing, Context, Description, DeviceProfile, Reply
from quiesce.model.gauges import Readings
from quiesce.model.operations import Operation
from quiesce.model.rules import IN_TIME, SURVIVES

MIB = 1 << 20

HEADER = """\
title: x
kind:  control
needs: memory

"""


def lines_of(backend: Backend, body: str) -> list[str]:
    shrunk = shrink(backend, parse_text(HEADER + body, "x.case", "x"))
    assert shrunk is not None
    return write_case(shrunk.case).partition("\n\n")[2].splitlines()


def test_what_finds_nothing_is_not_shrunk() -> None:
    assert shrink(reference(), parse_text(HEADER + "a = allocate 1MiB\nfree a\n", "x.case", "x")) is None


def test_what_does_not_matter_goes() -> None:
    body = "s = create stream\na = allocate 1000\nlaunch on s\nfree a\nfree a\nb = allocate 5MiB\nsynchronize device\n"
    assert lines_of(faulty("pool.accepts_double_free"), body) == ["a = allocate 1", "free a", "free a"]


def test_a_loop_that_is_only_the_vehicle_is_written_out() -> None:
    body = "repeat 40:\n    k[i] = allocate 64KiB\n"
    lines = lines_of(faulty("pool.accepts_double_free"), body + "free k[0]\nfree k[0]\n")
    assert lines == ["k_0 = allocate 1", "free k_0", "free k_0"]


def test_a_loop_that_is_measured_runs_less_often_and_warms_up_as_long() -> None:
    body = "repeat 48:\n    w[i] = node\n    w = node of w[i]\n    backward w\n    drop w\n"
    body += "expect cost grows 0 per iteration after 8\n"
    shrunk = shrink(faulty("tape.scans_everything"), parse_text(HEADER + body, "x.case", "x"))
    assert shrunk is not None
    repeat, growth = shrunk.case.body
    assert isinstance(repeat, Repeat)
    assert repeat.count < 24
    assert getattr(growth, "after", None) == 8


def test_many_equal_blocks_become_a_few_large_ones() -> None:
    body = "p = create pool limit=64MiB\n"
    body += "".join(f"b{n} = allocate 4MiB pool=p\n" for n in range(14))
    body += "".join(f"free b{n}\n" for n in range(14))
    body += "c = allocate 12MiB pool=p\n"
    assert len(lines_of(faulty("pool.cached_counts_against_limit"), body)) <= 6


@pytest.mark.long
def test_a_device_that_holds_few_blocks_is_filled_by_few() -> None:
    body = "".join(f"b{n} = allocate 3KiB\n" for n in range(40))  # a chunk holds sixteen
    assert len(lines_of(faulty("pool.carves_past_the_chunk"), body)) <= 2 + 2  # and what was expected and observed


@pytest.mark.long
def test_blocks_that_only_fill_the_device_go_with_their_room() -> None:
    body = "s = create stream\n" + "".join(f"b{n} = allocate 460000\n" for n in range(80))
    body += "stall s\nlaunch on s writes=b7\nfree b7\nc = allocate 460000\n"
    text = HEADER.replace("\n\n", "\ndevice: capacity=32MiB\n\n") + body
    shrunk = shrink(faulty("pool.waits_without_searching"), parse_text(text, "x.case", "x"))
    assert shrunk is not None
    assert len(shrunk.case.body) <= 8
    assert shrunk.trials <= 1000  # it begins with what saves most


@pytest.mark.long
def test_blocks_that_only_pass_the_time_pass_it_where_it_counts() -> None:
    body = "s = create stream\n" + "".join(f"b{n} = allocate 512\n" for n in range(50))
    body += "a = allocate 2MiB on s\nlaunch on s writes=a\nfree a\n"  # given back some 50 requests later
    body += "".join(f"free b{n}\n" for n in range(50))
    decays = next(each.backend for each in FAULTY if each.name == "DecaysInFlight")
    shrunk = shrink(decays, parse_text(HEADER + body, "x.case", "x"), trials_max=400)
    assert shrunk is not None
    assert len(shrunk.case.body) <= 54


def test_without_a_small_block_a_part_of_the_device_may_do() -> None:
    text = HEADER.replace("memory", "memory\ndevice: capacity=32MiB") + "a = allocate 1\nb = allocate 2\n"
    case = parse_text(text, "x.case", "x")
    (position, block), _ = allocations(case.body)
    smaller = list(cases_without(case, [position], [block]))
    assert {each.device.capacity_bytes for each in smaller} >= {32 * MIB - 512, 16 * MIB, 8 * MIB, 2 * MIB}
    assert all(write_case(each).endswith("\n\nb = allocate 2\n") for each in smaller)


@pytest.mark.long
def test_blocks_that_go_together_or_not_at_all_go_together() -> None:
    body = "s = create stream\n"
    body += "".join(f"b{n} = allocate 1KiB\n" for n in range(16))  # a chunk: with fifteen, the next block lies in it
    body += "a = allocate 1KiB\nstall s\nlaunch writes=a\nfree a\nc = allocate 1KiB\nfree c\nd = allocate 8GiB\n"
    assert len(lines_of(faulty("reuse.drops_dependency"), body)) <= 8 + 2  # and what was expected and observed


def test_shrinking_introduces_no_race() -> None:
    body = """\
s = create stream nonblocking
t = create stream nonblocking
e = create event
a = allocate 1MiB on s
stall s
launch on s writes=a
record event e on s
wait event e on t
launch on t writes=a
free a on t
b = allocate 1MiB on t
launch on t writes=b
c = allocate 1MiB on s
"""
    shrunk = shrink(faulty("reuse.ignores_guards"), parse_text(HEADER + body, "x.case", "x"))
    if shrunk is not None:
        assert shrink(reference(), shrunk.case) is None


class Impatient:
    """A backend whose user presses Ctrl-C once it was opened so many times."""

    def __init__(self, backend: Backend, opens: int) -> None:
        self.backend, self.opens = backend, opens

    def describe(self) -> Description:
        return self.backend.describe()

    def open(self, profile: DeviceProfile) -> Context:
        self.opens -= 1
        if not self.opens:
            raise KeyboardInterrupt
        return self.backend.open(profile)


BODY = "".join(f"b{n} = allocate 4KiB\n" for n in range(20)) + "free b3\nfree b3\n"


def test_an_interruption_keeps_the_best_so_far() -> None:
    whole = parse_text(HEADER + BODY, "x.case", "x")
    backend = faulty("pool.accepts_double_free")
    shrunk = shrink(Impatient(backend, 12), whole)
    assert shrunk is not None
    assert shrunk.interrupted
    assert len(shrunk.case.body) < len(whole.body)
    again = shrink(backend, shrunk.case)
    assert again is not None
    assert not again.interrupted
    assert len(again.case.body) == 3


class Hanging:
    """A backend that no longer answers once it was asked for so many blocks; 0: it does not even open."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.hangs = 0

    def describe(self) -> Description:
        return reference().describe()

    def open(self, profile: DeviceProfile) -> Context:
        if not self.blocks:
            self.hang()
        return HangingContext(self, reference().open(profile))

    def hang(self) -> None:
        self.hangs += 1
        raise BackendFault(IN_TIME, "the driver program did not answer")


class HangingContext:
    foresees = False

    def __init__(self, backend: Hanging, inner: Context) -> None:
        self.backend, self.inner, self.blocks_left = backend, inner, backend.blocks

    def perform(self, operation: Operation) -> Reply:
        self.blocks_left -= isinstance(operation, ops.Allocate)
        if not self.blocks_left:
            self.backend.hang()
        return self.inner.perform(operation)

    def readings(self) -> Readings:
        return self.inner.readings()

    def close(self) -> Closing:
        return self.inner.close()


def test_a_program_that_hangs_whatever_is_asked_is_found_soon() -> None:
    hanging = Hanging(0)
    shrunk = shrink(hanging, parse_text(HEADER + BODY, "x.case", "x"))
    assert shrunk is not None
    assert shrunk.finding.rule == IN_TIME
    assert hanging.hangs < 10
    assert len(shrunk.case.body) == 1


def test_few_trials_wait_for_a_program_that_hangs() -> None:
    hanging = Hanging(20)  # no line can go, so each smaller block is another trial that hangs
    shrunk = shrink(hanging, parse_text(HEADER + BODY, "x.case", "x"))
    assert shrunk is not None
    assert shrunk.finding.rule == IN_TIME
    assert hanging.hangs == 10 + 1, "each lasts as long as a driver program is waited for; the last has short names"
    assert len(shrunk.case.body) == 20


class Counting:
    """A backend that counts how often it is opened."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.opens = 0

    def describe(self) -> Description:
        return self.backend.describe()

    def open(self, profile: DeviceProfile) -> Context:
        self.opens += 1
        return self.backend.open(profile)


class Dying(Hanging):
    """A backend that ends once it was asked for so many blocks."""

    def hang(self) -> None:
        raise BackendFault(SURVIVES, "the driver program was killed")


FULL = "".join(f"b{n} = allocate 1\n" for n in range(8))


def test_cases_that_differ_in_names_alone_are_run_once() -> None:
    counting = Counting(Dying(8))  # without any two of the blocks it is the same case, in 28 ways
    shrunk = shrink(counting, parse_text(HEADER + FULL, "x.case", "x"))
    assert shrunk is not None
    assert len(shrunk.case.body) == 8
    assert counting.opens < 400  # 829, where each is run


def test_a_second_case_is_not_run_where_the_first_one_was_alike() -> None:
    counting = Counting(Dying(8))
    known: Known = {}
    first = shrink(counting, parse_text(HEADER + FULL, "x.case", "x"), known=known)
    opens = counting.opens
    second = shrink(counting, parse_text(HEADER + FULL.replace("b", "c"), "x.case", "x"), known=known)
    assert first is not None
    assert second is not None
    assert second.case.body == first.case.body
    assert second.trials == 0
    assert counting.opens == opens + 1, "for the names"


@pytest.mark.parametrize(
    ("body", "is_alike"),
    [
        ("b1 = allocate 4KiB\nb2 = allocate 1\nfree b2\nfree b1\n", True),
        ("b1 = allocate 4KiB\nb2 = allocate 1\nfree b1\nfree b2\n", False),
        ("b1 = allocate 4KiB\nb2 = allocate 2\nfree b2\nfree b1\n", False),
        ("b1 = allocate 4KiB\nb2 = allocate 1 -> out of memory\nfree b2\nfree b1\n", False),
    ],
)
def test_bodies_are_alike_whose_slots_alone_have_other_names(body: str, is_alike: bool) -> None:
    first = parse_text(HEADER + "x = allocate 4KiB\ny = allocate 1\nfree y\nfree x\n", "x.case", "x").body
    assert (alike(parse_text(HEADER + body, "x.case", "x").body) == alike(first)) is is_alike


@pytest.mark.parametrize(
    ("body", "enlarged"),
    [
        ("a = allocate 512\nb = allocate 512\nc = allocate 512\n", {"c"}),
        ("a = allocate 512\nb = allocate 512\nc = allocate 512\nfree b\n", {"a", "b", "c"}),
        ("a = allocate 512\nb = allocate 512 pinned\nc = allocate 512\n", {"a", "b", "c"}),
        ("a = allocate 512\ntrim\nb = allocate 512\n", {"a", "b"}),
    ],
)
def test_of_blocks_that_fill_a_device_alike_one_is_enlarged(body: str, enlarged: set[str]) -> None:
    device = DeviceProfile()
    whole = {device.capacity_bytes, device.pinned_capacity_bytes}
    bodies = larger_bodies(parse_text(HEADER + body, "x.case", "x").body, device, 1 << 25)
    assert {each.slot for larger in bodies for _, each in allocations(larger) if each.size_bytes in whole} == enlarged


def test_what_a_loop_makes_keeps_its_name() -> None:
    loop = "repeat 4:\n    k[i] = allocate 64KiB\n"
    bodies = [parse_text(HEADER + f"{loop}free k[{number}]\n", "x.case", "x").body for number in (0, 1)]
    assert alike(bodies[0]) != alike(bodies[1])


@pytest.mark.parametrize("trials_max", [1, 2, 20])
def test_there_are_as_many_trials_as_are_allowed_and_one_for_the_names(trials_max: int) -> None:
    counting = Counting(faulty("pool.accepts_double_free"))
    shrunk = shrink(counting, parse_text(HEADER + BODY, "x.case", "x"), trials_max=trials_max)
    assert shrunk is not None
    assert shrunk.trials == trials_max
    assert counting.opens == trials_max + 1


def test_an_interruption_before_anything_was_found_is_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        shrink(Impatient(faulty("pool.accepts_double_free"), 1), parse_text(HEADER + BODY, "x.case", "x"))


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    shrink(
        faulty("pool.accepts_double_free"),
        parse_text(HEADER + BODY, "x.case", "x"),
        progress=lambda trials, lines: told.append((trials, lines)),
    )
    assert told == sorted(told, key=lambda pair: pair[0])
    assert told[-1][1] == 3


def test_a_staged_block_is_allocated_where_its_source_does_not_matter() -> None:
    body = "a = allocate 1 pageable\nb = stage a\nfree b\nfree b\n"
    assert lines_of(faulty("pool.accepts_double_free"), body) == ["b = allocate 1", "free b", "free b"]


def test_a_stream_that_all_blocks_share_goes_at_once() -> None:
    skipping = next(each for each in FAULTY if each.name == "WalksWhileItRemoves")
    body = "s = create stream\na = allocate 1 on s\nb = allocate 1 on s\nfree a\nfree b\nsynchronize device\ntrim\n"
    assert lines_of(skipping.backend, body) == ["a = allocate 1", "b = allocate 1"]


def test_a_copy_to_a_new_block_is_staged() -> None:
    body = "a = allocate 5KiB pinned\nb = allocate 1\ncopy a to b\nfree a\nc = allocate 5KiB pinned\n"
    lines = lines_of(faulty("pinned.in_flight_reuse"), body)
    assert lines[:3] == ["a = allocate 1 pageable", "b = stage a", "c = allocate 1 pinned"]


def test_a_copy_to_a_block_in_use_is_not_staged() -> None:
    used = parse_text(HEADER + "a = allocate 1 pinned\nb = allocate 1\nfill b 0\ncopy a to b\n", "x.case", "x")
    assert list(staged_bodies(used.body)) == []


def test_sizes_that_have_to_be_alike_become_smaller_together() -> None:
    body = "a = allocate 6000\nb = allocate 6000\nc = allocate 77\n"
    case = parse_text(HEADER + body, "x.case", "x")
    made = [[each for _, each in requests(smaller)] for smaller in smaller_bodies(case.body)]
    sizes = [[each.size_bytes for each in three if isinstance(each, ops.Allocate)] for three in made]
    assert sizes[0] == [1, 1, 77]
    assert all(first == second < 6000 and third == 77 for first, second, third in sizes)
