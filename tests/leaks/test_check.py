"""Whole checks, on gauges that a test tells what to read."""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from quiesce.leaks.check import LeakCheck
from quiesce.leaks.evidence import WINDOW
from quiesce.leaks.judgement import Judgement, Outcome
from quiesce.leaks.meters import tracing
from quiesce.leaks.meters.at_hand import AT_HAND_COUNT
from quiesce.leaks.meters.memory import HEAP, HeapMeter, PythonMeter
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import ANONYMOUS, C_HEAP, DESCRIPTORS, PYTHON, REGISTERED
from quiesce.leaks.stages.rounds import OtherThreads

from .meters import ToldHeap, ToldListing, ToldMeter

ROUNDS = 12


class Code:
    """Code whose state after so many rounds is told by ``state``."""

    def __init__(self, state: Callable[[int], int], outcomes: Iterable[Outcome] = ()) -> None:
        self.rounds = 0
        self._state = state
        self._outcomes = iter(outcomes)

    def run(self) -> Outcome:
        self.rounds += 1
        return next(self._outcomes, Outcome.PASSED)

    def judge(self, plan: Plan = Plan(rounds=ROUNDS, gauges=(DESCRIPTORS,))) -> Judgement:  # noqa: B008 - frozen
        return LeakCheck(self.run, [ToldListing(lambda: self._state(self.rounds))], plan, Owners([])).judge()


@pytest.mark.parametrize(("others", "rounds"), [(0, 3), (1, 5)])
@pytest.mark.parametrize("state", [lambda rounds: 5, lambda rounds: min(rounds, 1)], ids=["same", "warm"])
def test_what_is_at_rest_from_the_start_is_soon_acquitted(
    monkeypatch: pytest.MonkeyPatch, state: Callable[[int], int], others: int, rounds: int
) -> None:
    monkeypatch.setattr(OtherThreads, "ran", lambda _: others)
    judgement = Code(state).judge()
    assert (judgement.runs, judgement.growths) == (rounds, ())


@pytest.mark.long
def test_beside_other_threads_one_movement_hides_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third reading hides a leak of every other round, as a chunk does that another thread freed."""
    seen = {2: 1, 3: 1, 4: 2, 5: 2}
    monkeypatch.setattr(OtherThreads, "ran", lambda _: 1)
    (growth,) = Code(lambda rounds: seen.get(rounds, 1 + rounds // 2) if rounds > 1 else 1).judge().growths
    assert growth.per_round == pytest.approx(0.5)


@pytest.mark.parametrize(("others", "rounds"), [(0, 3), (1, 9), (2, 13)])
def test_a_heap_beside_other_threads_must_rest_for_longer(
    monkeypatch: pytest.MonkeyPatch, others: int, rounds: int
) -> None:
    monkeypatch.setattr(OtherThreads, "ran", lambda _: others)
    plan = Plan(rounds=ROUNDS, gauges=(C_HEAP,))
    assert LeakCheck(lambda: Outcome.PASSED, [ToldHeap(lambda: 5)], plan, Owners([])).judge().runs == rounds


@pytest.mark.long
def test_a_leak_is_found_that_lives_on_what_another_thread_has_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherThreads, "ran", lambda _: 1)
    assert judge_heap(lambda rounds: 320 * max(0, rounds - AT_HAND_COUNT)).growths


@pytest.mark.parametrize(
    ("connections", "rounds"), [(10, 64), (16, 64), pytest.param(48, 64, marks=pytest.mark.long), (64, 128)]
)
def test_a_pool_that_opens_one_connection_more_in_each_round_is_no_leak(connections: int, rounds: int) -> None:
    judgement = Code(lambda rounds: min(rounds, connections)).judge(Plan(rounds=rounds, gauges=(DESCRIPTORS,)))
    assert judgement == Judgement(Outcome.PASSED, judgement.runs)


def test_memory_that_native_code_maps_is_no_leak_beside_what_a_cache_let_go() -> None:
    """An allocator may keep at hand what the cache gave back."""

    @functools.lru_cache(maxsize=10_000)
    def kept(key: int) -> object:
        return object()

    def run() -> Outcome:
        kept(kept.cache_info().misses)
        rounds.append(0)
        return Outcome.PASSED

    rounds: list[int] = []
    cached = ToldMeter(lambda: kept.cache_info().currsize, REGISTERED, "bytes")
    mapped = ToldMeter(lambda: len(rounds) << 20, ANONYMOUS, "bytes")
    plan = Plan(rounds=ROUNDS, gauges=(REGISTERED, ANONYMOUS), seconds=120)  # a large process is slow to search
    assert LeakCheck(run, [cached, mapped], plan, Owners([])).judge().growths == ()
    judgement = LeakCheck(run, [mapped], plan, Owners([])).judge()
    assert [growth.quantity for growth in judgement.growths] == [mapped.quantity], judgement.inconclusive


def test_what_moved_is_run_until_it_was_at_rest_for_twice_as_long() -> None:
    assert Code(lambda rounds: min(rounds, 2)).judge() == Judgement(Outcome.PASSED, 6)


@pytest.mark.parametrize(
    ("readings", "rounds"),
    [((7, 7, 5), 6), ((5, 7, 6, 5), 8), ((5, 7, 6, 5, 4), 9)],
    ids=["in the third round", "in the fourth", "in the fifth"],
)
def test_what_comes_to_rest_soon_is_not_pursued(readings: tuple[int, ...], rounds: int) -> None:
    code = Code(lambda rounds: readings[min(rounds, len(readings)) - 1])
    assert code.judge() == Judgement(Outcome.PASSED, rounds)


@pytest.mark.long
@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("first", [2, 3])
def test_what_moves_in_the_first_rounds_and_goes_on_is_pursued(every: int, first: int) -> None:
    (growth,) = Code(lambda rounds: (rounds - first) // every).judge(Plan(rounds=24, gauges=(DESCRIPTORS,))).growths
    assert growth.per_round == pytest.approx(1 / every, rel=0.2)


WRITES_PIECE_BY_PIECE = """\
import io
from quiesce.leaks.check import LeakCheck
from quiesce.leaks.judgement import Outcome
from quiesce.leaks.meters.memory import HeapMeter, PythonMeter
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan

written, lines = io.StringIO(), 200

def run():
    written.write("line\\n" * lines)  # no constant, of which 3.11 would keep one text and many references
    return Outcome.PASSED

judgement = LeakCheck(run, [PythonMeter(), HeapMeter()], Plan(rounds=24), Owners([])).judge()
print(*(growth.quantity.family for growth in judgement.growths))
"""


@pytest.mark.skipif(bool(HeapMeter().absent()), reason="this C library does not count its heap")
def test_a_text_that_grows_by_a_quarter_at_a_time_leaks(tmp_path: Path) -> None:
    assert found_by(WRITES_PIECE_BY_PIECE, tmp_path) == ["python"]


def found_by(program: str, folder: Path) -> list[str]:
    """Return the words that a program writes. It is a file, so that its lines are code under test."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, str(folder / "program.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


KEEPS_AND_TAKES = """\
import ctypes
from quiesce.leaks.check import LeakCheck
from quiesce.leaks.judgement import Outcome
from quiesce.leaks.meters.memory import HeapMeter, PythonMeter
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan

take = {takes}
take.restype, take.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
kept = []

def run():
    kept.append((object(), take(100)))
    return Outcome.PASSED

judgement = LeakCheck(run, [PythonMeter(), HeapMeter()], Plan(seconds=120), Owners([])).judge()
print(*(growth.quantity.family for growth in judgement.growths))
"""


@pytest.mark.skipif(bool(HeapMeter().absent()), reason="this C library does not count its heap")
@pytest.mark.parametrize(
    ("takes", "found"),
    [("ctypes.pythonapi.PyMem_RawMalloc", ["python"]), ("ctypes.CDLL(None).malloc", ["python", "c-heap"])],
    ids=["traced", "native"],
)
def test_what_python_itself_takes_of_the_c_heap_for_an_object_is_no_finding_of_its_own(
    takes: str, found: list[str], tmp_path: Path
) -> None:
    """Locks and the shapes of NumPy's arrays are such memory; in traces they look like blocks of Python's allocator."""
    assert found_by(KEEPS_AND_TAKES.format(takes=takes), tmp_path) == found


@pytest.mark.long
@pytest.mark.parametrize("every", [1, 2])
def test_a_leak_is_found_with_its_rate_and_origin(every: int) -> None:
    (growth,) = Code(lambda rounds: rounds // every).judge().growths
    assert growth.per_round == pytest.approx(1 / every)
    assert growth.quantity.family == DESCRIPTORS
    assert growth.origin.endswith(": self.rounds += 1")  # the line after which the gauge says more


@pytest.mark.long
def test_a_leak_is_told_with_the_readings_of_the_rounds_that_decided() -> None:
    code = Code(lambda rounds: 10 * rounds)
    (growth,) = code.judge().growths
    assert growth.per_round == 10
    assert growth.readings == tuple(10 * number for number in growth.rounds)
    assert len(growth.rounds) == 5 * WINDOW, "windows that end after 8, 24, 48, 88 and 160 runs"


@pytest.mark.long
def test_a_movement_against_a_leak_does_not_hide_it() -> None:
    code = Code(lambda rounds: (rounds + 1) // 2 + (rounds == 2))  # over rounds 2 to 4 it seems to be at rest
    assert code.judge().growths


@pytest.mark.parametrize("state", [lambda rounds: min(rounds, 9), lambda rounds: rounds % 5])
def test_a_warm_up_and_a_saw_tooth_are_acquitted(state: Callable[[int], int]) -> None:
    judgement = Code(state).judge()
    assert judgement.growths == ()
    assert judgement.runs > 6


@pytest.mark.long
def test_a_cache_that_is_emptied_at_the_end_takes_no_leak_of_the_heap_with_it() -> None:
    """The cache is filled once, in endurance, and holds more than has leaked by then."""
    rounds = [0]
    remember = functools.lru_cache(maxsize=2)(lambda key: key)

    def run() -> Outcome:
        rounds[0] += 1
        if rounds[0] == 8:
            remember(0)
        return Outcome.PASSED

    meter = ToldHeap(lambda: rounds[0] * 32 + remember.cache_info().currsize * 5000)
    (growth,) = LeakCheck(run, [meter], Plan(rounds=ROUNDS, gauges=(C_HEAP,)), Owners([])).judge().growths
    assert growth.per_round == pytest.approx(32)


def judge_heap(read: Callable[[int], int], run: Callable[[int], None] = lambda _: None) -> Judgement:
    """Judge code that takes of the C heap what ``read`` says, by the number of rounds."""
    rounds = itertools.count()
    now = [0]

    def run_round() -> Outcome:
        now[0] = next(rounds)
        run(now[0])
        return Outcome.PASSED

    meters = (ToldHeap(lambda: read(now[0])), PythonMeter())
    return LeakCheck(run_round, meters, Plan(rounds=ROUNDS, seconds=120), Owners([])).judge()


def filling(rounds: int) -> int:
    return round(100_000 * (1 - math.exp(-rounds / 60)))


@pytest.mark.long
@pytest.mark.parametrize("others_ran", [False, True])
def test_beside_other_threads_a_heap_that_fills_ever_more_slowly_is_no_leak(
    monkeypatch: pytest.MonkeyPatch, others_ran: bool
) -> None:
    monkeypatch.setattr(OtherThreads, "ran", lambda _: int(others_ran))
    assert judge_heap(filling).growths == ()


@pytest.mark.long
def test_beside_other_threads_a_heap_that_leaks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherThreads, "ran", lambda _: 1)
    (growth,) = judge_heap(lambda rounds: 320 * rounds + filling(rounds) // 20).growths
    assert growth.per_round == pytest.approx(320, rel=0.1)


def swaying(rounds: int) -> int:
    """What rises for two rounds and falls in each third one."""
    return 320 * rounds - 960 * (rounds % 3 == 0)


@pytest.mark.long
@pytest.mark.parametrize("most", [90, None], ids=["bound", "leak"])
def test_what_falls_at_times_must_grow_for_twice_as_long(most: int | None) -> None:
    """A table whose entries go at random may rise for as long as is watched once."""
    judgement = judge_heap(lambda rounds: swaying(rounds) if most is None else min(swaying(rounds), 320 * most))
    assert bool(judgement.growths) == (most is None)
    assert judgement.runs > 2 * 4 * ROUNDS


@pytest.mark.long
@pytest.mark.parametrize(("seconds", "samples"), [(0, 8), (10, 0)])
def test_what_has_no_time_is_not_traced(monkeypatch: pytest.MonkeyPatch, seconds: int, samples: int) -> None:
    kept: list[bytes] = []
    taken = itertools.count()
    sample = tracing.Tracing.sample
    monkeypatch.setattr(tracing.Tracing, "sample", lambda self: next(taken) >= 0 and sample(self))

    def run() -> Outcome:
        kept.append(bytes(100))
        return Outcome.PASSED

    plan = Plan(rounds=ROUNDS, gauges=(PYTHON,), seconds=250)
    owners = Owners([tracing.__file__])
    check = LeakCheck(run, [PythonMeter()], plan, owners, clock=lambda: float(len(kept) * seconds))
    judgement = check.judge()
    assert bool(judgement.growths) == (seconds == 0)
    assert bool(judgement.inconclusive) == (seconds > 0)  # it may be a cache that is not full yet
    assert next(taken) == samples + bool(samples)  # and one when all was let go


@pytest.mark.long
def test_a_native_leak_bears_out_no_trace_of_what_is_replaced() -> None:
    """Small objects take the place of older ones, which have no traces: the C heap, on which none of them is, grows."""
    slots = [bytes([1, number % 256, number // 256]) for number in range(1000)]

    def replace(number: int) -> None:
        slots[number] = bytes([2, number % 256, number // 256])

    assert [growth.quantity for growth in judge_heap(lambda rounds: 320 * rounds, replace).growths] == [HEAP]


def test_code_that_is_over_is_not_repeated() -> None:
    assert Code(lambda rounds: 0, [Outcome.OVER]).judge() == Judgement(Outcome.OVER, 1)


@pytest.mark.long
def test_code_that_always_fails_is_judged_as_well() -> None:
    judgement = Code(lambda rounds: rounds, [Outcome.FAILED] * 1000).judge()
    assert judgement.outcome is Outcome.FAILED
    assert len(judgement.growths) == 1


def test_what_no_longer_grows_needs_no_more_time() -> None:
    code = Code(lambda rounds: rounds)
    meter = ToldMeter(lambda: min(code.rounds, 6))
    plan = Plan(gauges=(DESCRIPTORS,), seconds=10)
    judgement = LeakCheck(code.run, [meter], plan, Owners([]), clock=lambda: 2.0 * code.rounds).judge()
    assert judgement == Judgement(Outcome.PASSED, 14)


def test_beside_other_threads_only_the_heap_must_rest_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherThreads, "ran", lambda _: 4)
    code = Code(lambda rounds: rounds)
    meters = [ToldMeter(lambda: min(code.rounds, 35)), ToldHeap(lambda: 5)]
    judgement = LeakCheck(code.run, meters, Plan(gauges=(DESCRIPTORS, C_HEAP)), Owners([])).judge()
    assert (judgement.growths, judgement.inconclusive) == ((), "")
    assert judgement.runs < 100


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0, 5])
def test_a_cache_that_has_no_time_to_fill_is_not_accused(seconds: int) -> None:
    cache: dict[int, bytes] = {}
    rounds = itertools.count()

    def run() -> Outcome:
        now[0] = next(rounds)
        cache[now[0] % 100] = bytes(100)
        return Outcome.PASSED

    now = [0]
    plan = Plan(rounds=24, gauges=(PYTHON,), seconds=300)
    check = LeakCheck(run, [PythonMeter()], plan, Owners([tracing.__file__]), clock=lambda: float(now[0] * seconds))
    judgement = check.judge()
    assert judgement.growths == ()
    assert bool(judgement.inconclusive) == (seconds > 0)


def test_rounds_that_do_not_go_alike_have_no_verdict() -> None:
    outcomes = [Outcome.PASSED, Outcome.PASSED, *[Outcome.FAILED] * 10]
    judgement = Code(lambda rounds: rounds, outcomes).judge()
    assert judgement.unstable
    assert judgement.growths == ()
    assert judgement.inconclusive == "round 3 failed, although the rounds before it passed"


def test_a_round_that_only_fails_while_it_is_measured_says_so() -> None:
    outcomes = [Outcome.PASSED] * 2 + [Outcome.FAILED] + [Outcome.PASSED] * 2 + [Outcome.FAILED] * 2
    judgement = Code(lambda rounds: rounds, outcomes).judge()
    assert not judgement.unstable
    assert judgement.inconclusive == "round 3 failed because of the check's own measurements; without them it passed"


def test_a_round_that_fails_by_chance_is_not_blamed_on_the_measurements() -> None:
    outcomes = [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]
    assert Code(lambda rounds: rounds, outcomes).judge().unstable


def test_a_round_that_is_skipped_leaves_no_verdict() -> None:
    judgement = Code(lambda rounds: rounds, [Outcome.PASSED, Outcome.OVER]).judge()
    assert judgement.inconclusive == "round 2 was skipped, or the run ends early"


def test_a_ring_that_is_still_filling_leaves_no_verdict() -> None:
    ring: deque[object] = deque(maxlen=100_000)

    def state(rounds: int) -> int:
        ring.append([rounds])
        return rounds

    judgement = Code(state).judge()
    assert judgement.growths == ()
    assert judgement.inconclusive.startswith("a deque(maxlen=…) is bounded at 100,000 entries, and ")
    assert judgement.inconclusive.endswith("; write rounds=200000, or fill it in a fixture of a wider scope")


def test_an_error_ends_the_check_and_its_meters() -> None:
    def fail() -> Outcome:
        raise KeyboardInterrupt

    meter = ToldMeter(lambda: 0)
    with pytest.raises(KeyboardInterrupt):
        LeakCheck(fail, [meter], Plan(rounds=ROUNDS, gauges=(DESCRIPTORS,)), Owners([])).judge()
    assert meter.calls[-1] == "rest"
