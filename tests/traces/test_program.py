"""What a report shows of a program: its memory over time, what happened around a finding, what it held at its end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import BackendUnavailable
from quiesce.model.program_run import Conditions, FailedCalls, MemorySeries, ProgramRun
from quiesce.simulator.judge.causes import SHOWN_MAX
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.judge.memory_use import PARTS_MAX, SERIES_MAX, MemoryRecorder
from quiesce.simulator.judge.program import describe_program
from quiesce.simulator.judge.wording import Sentences
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import Flag, Record, Seen, Thing, open_ledger
from quiesce.simulator.runtime.stacks import open_stacks

CONDITIONS = Conditions("./client", "cuda:12", "eager", 0, "eager", "lost", 1, 1 << 34)


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def described(folder: Path, body: str, **options: str | int) -> ProgramRun:
    """What a program did whose ``main`` has the body."""
    settings = MachineSettings(parse_flavour("cuda:12"), options=options)
    with (
        run_program([str(compile_client(folder, body))], settings, os.environ) as ended,
        open_ledger(ended.ledgers[0]) as ledger,
        open_stacks(ended.ledgers[0]) as stacks,
    ):
        memory = MemoryRecorder(ledger.lost, ledger.observations)
        judgement = judge(ledger, AtExit.LOST, stacks, memory)
        return describe_program(ledger, stacks, judgement, memory, CONDITIONS, FailedCalls())


def sentences(program: ProgramRun, finding: int = 0) -> list[str]:
    (calls,) = (each.calls for each in program.surroundings if each.finding == finding)
    return [f"{call.number} {call.call} {call.text}{f' [{call.role}]' * bool(call.role)}" for call in calls]


def test_memory_is_counted_by_kind_device_and_stream(tmp_path: Path) -> None:
    memory = described(
        tmp_path,
        """void *p, *q, *r, *s;
        cudaStreamCreate(&s); cudaMalloc(&p, 3000); cudaHostAlloc(&q, 500, 0); cudaMallocAsync(&r, 100, s);
        cudaFree(p); cudaFreeAsync(r, s); cudaStreamSynchronize(s); cudaFreeHost(q); cudaStreamDestroy(s); return 0;""",
    ).memory
    assert memory.moments == (1, 2, 3, 5, 6, 9)  # cudaFree waits for the stream that allocated, which is an event too
    assert memory.series == (
        MemorySeries("device", 0, None, (3000, 3000, 3000, 0, 0, 0), 3000, 1),
        MemorySeries("device", 0, 1, (0, 0, 100, 100, 0, 0), 100, 1),
        MemorySeries("pinned", 0, None, (0, 500, 500, 500, 500, 0), 500, 1),
    )
    assert (memory.peak_bytes, memory.peak_call) == (3600, 3)


def test_a_long_run_is_thinned_and_keeps_its_peak(tmp_path: Path) -> None:
    memory = described(
        tmp_path,
        """void *p, *q;
        for (int i = 0; i < 9999; i++) {
            cudaMalloc(&p, 100); if (i == 5000) { cudaMalloc(&q, 7777); cudaFree(q); } cudaFree(p);
        }
        cudaMalloc(&p, 11); cudaMalloc(&kept, 5); cudaFree(kept); cudaFree(p); cudaMalloc(&kept, 31); return 0;""",
    ).memory
    (series,) = memory.series
    assert PARTS_MAX <= len(memory.moments) <= 2 * PARTS_MAX + 1
    assert list(memory.moments) == sorted(set(memory.moments))
    assert (memory.peak_bytes, series.peak_bytes, max(series.bytes), min(series.bytes)) == (7877, 7877, 7877, 0)
    assert (memory.moments[-1], series.bytes[-1], series.allocations) == (2 * 10_000 + 4, 31, 10_003)


def test_what_was_allocated_before_the_ring_is_in_the_sum(tmp_path: Path) -> None:
    program = described(
        tmp_path,
        """void *p, *early;
        cudaMalloc(&kept, 1000); cudaMalloc(&early, 50);
        for (int i = 0; i < 99; i++) { cudaMalloc(&p, 8); cudaFree(p); }
        cudaFree(early); return 0;""",
        ring=16,
    )
    (series,) = program.memory.series
    assert program.first_call == 201 - 16
    assert (series.bytes[-1], series.peak_bytes, program.memory.peak_bytes) == (1000, 1058, 1058)


def test_what_has_no_colour_of_its_own_is_one_series(tmp_path: Path) -> None:
    memory = described(
        tmp_path,
        """void *p, *s;
        for (int i = 0; i < 12; i++) { cudaStreamCreate(&s); cudaMallocAsync(&p, 100 + i, s); }
        cudaDeviceSynchronize(); return 0;""",
    ).memory
    assert len(memory.series) == SERIES_MAX
    other = memory.series[-1]
    assert (other.kind, other.device, other.stream, other.allocations) == ("other", None, None, 5)
    assert (other.bytes[-1], memory.peak_bytes) == (100 + 101 + 102 + 103 + 104, sum(range(100, 112)))


def test_refusals_are_kept_and_counted(tmp_path: Path) -> None:
    memory = described(
        tmp_path,
        """void *p;
        for (int i = 0; i < 99; i++) cudaMalloc(&p, 1ull << 40);
        return 0;""",
    ).memory
    assert (memory.refused_count, len(memory.refused)) == (99, 60)
    assert memory.refused[0].text == "cudaMalloc of 1,099,511,627,776 bytes"


def test_a_race_is_shown_with_what_came_before_and_after(tmp_path: Path) -> None:
    program = described(
        tmp_path,
        """void *p, *s, *t, *e; char *host = malloc(64);
        cudaMalloc(&p, 1000); cudaStreamCreate(&s); cudaStreamCreate(&t); cudaEventCreate(&e);
        cudaMemcpyAsync(p, host, 64, 1, s); cudaEventRecord(e, s); cudaMemsetAsync((char *)p + 8, 2, 1, t);
        cudaDeviceSynchronize(); cudaFree(p); cudaStreamDestroy(s); cudaStreamDestroy(t); cudaEventDestroy(e);
        return 0;""",
    )
    assert sentences(program) == [
        "0 cudaMalloc allocates block 0: 1,000 bytes of device memory on device 0",
        "1 cudaStreamCreate creates stream 2",
        "2 cudaStreamCreate creates stream 3",
        "3 cudaEventCreate creates event 4",
        "4 cudaMemcpyAsync stream 2 copies 64 bytes from host memory to block 0 [earlier use]",
        "5 cudaEventRecord event 4 is recorded on stream 2",
        "6 cudaMemsetAsync stream 3 writes 1 byte of block 0 from byte 8 on [later use]",
        "7 cudaDeviceSynchronize the host waits for device 0",
        "8 cudaFree frees block 0",
        "9 cudaStreamDestroy destroys stream 2",
        "10 cudaStreamDestroy destroys stream 3",
    ]


def test_a_launch_is_a_kernel_on_its_stream() -> None:
    launched = Record(7, Seen.LAUNCHED, Thing.NONE, 1, 1, "cuLaunchKernelEx", Flag(0), 4, 0, 0, 0, 0, 0)
    words = Sentences({}, "host memory")
    assert words.of(launched) == "stream 4 runs a kernel"
    assert words.of(launched._replace(stream=0)) == "the default stream of device 1 runs a kernel"


def test_a_block_has_the_name_that_it_had_then(tmp_path: Path) -> None:
    program = described(
        tmp_path,
        """void *p, *q;
        cudaMalloc(&p, 64); cudaFree(p); cudaMalloc(&q, 64); cudaMemset(q, 0, 64); cudaFree(q); cudaFree(q);
        return 0;""",
        recycle="eager",
    )
    said = sentences(program)
    assert "1 cudaFree frees block 0" in said
    assert "3 cudaMemset the default stream writes 64 bytes of block 2" in said
    assert said[-1] == "6 cudaFree frees block 2 again [freed again]"


def test_findings_that_are_left_out_are_counted(tmp_path: Path) -> None:
    program = described(
        tmp_path,
        "void *p; for (int i = 0; i < 30; i++) { cudaMalloc(&p, 64 + i); cudaFree(p); cudaFree(p); } return 0;",
    )
    assert program.findings_left_out == (("memory_is_freed_once", 30 - SHOWN_MAX),)


def test_nothing_is_shown_around_what_was_overwritten(tmp_path: Path) -> None:
    program = described(
        tmp_path,
        """void *p; cudaMalloc(&p, 64); cudaMalloc(&kept, 64); cudaFree(p); cudaFree(p);
        for (int i = 0; i < 99; i++) { cudaMalloc(&p, 8); cudaFree(p); } kept = 0; return 0;""",
        ring=16,
    )
    assert program.surroundings == ()


def test_holdings_are_grouped_by_place_the_largest_first(tmp_path: Path) -> None:
    holdings = described(
        tmp_path,
        """void *p; static void *held[3]; static void *pinned;
        for (int i = 0; i < count + 2; i++) cudaMalloc(&held[i], 100);
        cudaHostAlloc(&pinned, 1000, 0); cudaStreamCreate(&kept); return 0;""",
        stacks=1,
    ).holdings
    assert (holdings.count, holdings.size_bytes, holdings.at_exit) == (5, 1300, True)
    assert [(each.thing, each.count, each.size_bytes, each.site.call) for each in holdings.kept] == [
        ("pinned memory", 1, 1000, "cudaHostAlloc"),
        ("device memory", 3, 300, "cudaMalloc"),
        ("stream", 1, 0, "cudaStreamCreate"),
    ]
    assert all(each.site.frames for each in holdings.kept)


def test_holdings_say_who_could_give_them_back(tmp_path: Path) -> None:
    holdings = described(
        tmp_path,
        """void **owner = malloc(9 * sizeof *owner), *lost;
        for (int i = 0; i < 9; i++) cudaMalloc(&owner[i], 1000);
        cudaMalloc(&kept, 500); cudaMalloc(&lost, 70);
        lost = 0; owner = 0; return 0;""",
    ).holdings
    states = {each.state: (each.count, each.size_bytes) for each in holdings.kept}
    assert states == {"indirectly lost": (9, 9000), "held": (1, 500), "lost": (1, 70)}


def test_what_nobody_searched_for_is_not_called_lost(tmp_path: Path) -> None:
    holdings = described(tmp_path, "void *p; cudaMalloc(&p, 64); p = 0; abort();").holdings
    assert [each.state for each in holdings.kept] == ["held"]
    assert not holdings.at_exit


def test_two_runs_with_one_seed_are_told_alike(tmp_path: Path) -> None:
    body = "void *p; cudaMalloc(&p, 64); cudaFree(p); cudaFree(p); cudaMalloc(&kept, 9); return 0;"
    assert described(tmp_path, body) == described(tmp_path, body)
