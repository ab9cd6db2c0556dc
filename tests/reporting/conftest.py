"""One report that holds every verdict; the golden report is written from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quiesce.model.findings import CallSite, Finding, Frame, Grade, Quotation, RoundReadings
from quiesce.model.program_run import (
    Conditions,
    Event,
    FailedCall,
    FailedCalls,
    Holding,
    Holdings,
    MemoryHistory,
    MemorySeries,
    ObservedCall,
    ProgramRun,
    Surroundings,
)
from quiesce.model.results import Report, Result, Sample, Verdict

if TYPE_CHECKING:
    from .chromium import Browser

SQUEEZE = Result(
    case="pool/squeeze_before_oom",
    title="A pool gives its cached blocks back before it reports out of memory",
    path="cases/pool/squeeze_before_oom.case",
    backend="reference",
    verdict=Verdict.FAILED,
    findings=(
        Finding(
            rule="request_fits_but_out_of_memory",
            expected="allocated: 134217728 of 134217728 bytes are free or cached",
            observed="out of memory",
            operation_index=3,
            line=14,
            request="b = allocate 100663296",
            allocated_by="operation 1 (line 11): a = allocate 67108864",
        ),
    ),
    operations=4,
    skipped=1,
    upstream=("NVIDIA/cccl#4222",),
    reproduce="quiesce run cases/pool/squeeze_before_oom.case --backend reference",
    timeline=(
        Sample(1, "a = allocate 67108864", "allocated at 0x10000", 11, 67108864, 67108864, None),
        Sample(3, "b = allocate 100663296", "out of memory", 14, 0, 67108864, None),
    ),
)


LEAK = Result(
    case="tests/test_pool.py::test_keeps[small]",
    title="test_keeps[small] leaves nothing behind",
    path="tests/test_pool.py",
    backend="leak-check",
    verdict=Verdict.KNOWN_UPSTREAM,
    reason="the test is expected to fail: vendor#8",
    findings=(
        Finding(
            rule="a_repeated_test_leaves_nothing_behind",
            expected="the C heap grows by nothing per round",
            observed="the C heap grows by 1,008 bytes per round",
            line=4,
            allocated_by="native code; install memray, or run the test under heaptrack, to see where",
            kind="memory leak (C heap)",
            kept="no Python object: lost references or native memory",
            grade=Grade.GROWTH,
            quoted=(Quotation("tests/test_pool.py", 5, 4, ("def test_keeps():", "    größe(KEPT)\x1b[0m")),),
            readings=RoundReadings(
                gauge="the C heap",
                unit="bytes",
                first_round=7,
                grown=(0, 992, 2016, 3024, 4032, 5040, 6048, 7056, 8064),
                measured_from=10,
                per_round=1008.0,
            ),
        ),
    ),
    reproduce="pytest 'tests/test_pool.py::test_keeps[small]'",
)


def other(case: str, backend: str, verdict: Verdict, **fields: Any) -> Result:
    result = Result(case=case, title=f"Title of {case}", path=f"cases/{case}.case", backend=backend, verdict=verdict)
    return replace(result, **fields)


USED_AFTER_FREE = Result(
    case="python train.py",
    title="",
    path="",
    backend="cuda:12",
    verdict=Verdict.FAILED,
    operations=9,
    findings=(
        Finding(
            rule="freed_memory_is_not_used",
            expected="live memory",
            observed="cudaMemsetAsync uses 16 bytes at 0x7f0000000000, freed before",
            operation_index=7,
            request="cudaMemsetAsync",
            allocated_by="cudaMalloc (call 3) by step (train.py:8) < <module> (train.py:20)",
            kind="use after free",
            evidence="freed by cudaFree (call 5) by destroy() (pool.cpp:71) < libpool.so+0x1f40\n"
            "2 more findings of this rule are not shown",
            call_sites=(
                CallSite(
                    "allocated by",
                    "cudaMalloc",
                    3,
                    (
                        Frame("step", "train.py", 8),
                        Frame("pytest_pyfunc_call", "/lib/_pytest/python.py", 165, folded="pytest"),
                        Frame("_multicall", "/lib/pluggy/_callers.py", 121, folded="pluggy"),
                        Frame("<module>", "train.py", 20),
                    ),
                ),
                CallSite(
                    "freed by",
                    "cudaFree",
                    5,
                    (
                        Frame("destroy()", "/src/pool.cpp", 71, "/lib/libpool.so", 8016),
                        Frame("", module="/lib/libpool.so", offset=8000),
                    ),
                ),
                CallSite("used by", "cudaMemsetAsync", 7),
            ),
            seen=25,
        ),
    ),
    reproduce="quiesce exec -- python train.py",
    program=ProgramRun(
        conditions=Conditions(
            command="python train.py",
            flavour="cuda:12",
            schedule="seeded",
            seed=4,
            recycle="eager",
            at_exit="lost",
            devices=2,
            capacity_bytes=16 << 30,
            failures=("device:9",),
        ),
        first_call=0,
        launches=3,
        findings_left_out=(("freed_memory_is_not_used", 2),),
        notes=("not simulated: cudaGraphicsMapResources (1 times called)", "3 kernels were launched"),
        memory=MemoryHistory(
            moments=(1, 2, 3, 5, 8),
            series=(
                MemorySeries("device", 0, None, (0, 4 << 20, 5 << 20, 4 << 20, 4 << 20), 5 << 20, 2),
                MemorySeries("device", 0, 2, (0, 0, 0, 0, 1 << 20), 1 << 20, 1),
                MemorySeries("pinned", 0, None, (3 << 20,) * 5, 3 << 20, 1),
            ),
            peak_bytes=8 << 20,
            peak_call=3,
            refused=(Event(6, "cudaMalloc of 64 bytes"),),
            refused_count=1,
            marks=(Event(4, "step"),),
            marks_count=1,
        ),
        surroundings=(
            Surroundings(
                0,
                (
                    ObservedCall(3, 1, "cudaMalloc", "allocates block 3: 1,048,576 bytes", "allocated by"),
                    ObservedCall(5, 2, "cudaFree", "frees block 3", "freed by"),
                    ObservedCall(6, 1, "cudaMalloc", "is refused 64 bytes of device memory on device 0"),
                    ObservedCall(7, 1, "cudaMemsetAsync", "uses 16 bytes of block 3 after the free", "used by"),
                ),
            ),
        ),
        holdings=Holdings(
            kept=(
                Holding(
                    "lost",
                    "device memory",
                    0,
                    1,
                    4 << 20,
                    CallSite(
                        "allocated by",
                        "cudaMalloc",
                        2,
                        (Frame("load", "train.py", 4), Frame("<module>", "train.py", 19)),
                    ),
                ),
                Holding("held", "pinned memory", 0, 1, 3 << 20, CallSite("allocated by", "cudaHostAlloc", 1)),
                Holding("held", "stream", 0, 2, 0, CallSite("allocated by", "cudaStreamCreate", 0)),
            ),
            count=5,
            size_bytes=8 << 20,
            at_exit=True,
        ),
        failed_calls=FailedCalls(
            kept=(
                FailedCall(
                    CallSite("failed in", "cudaMemset", 4, (Frame("clear", "train.py", 12),)),
                    code=1,
                    error="cudaErrorInvalidValue",
                    count=1200,
                    unnoticed=1,
                ),
                FailedCall(
                    CallSite("failed in", "cudaMalloc", 6), 2, "cudaErrorMemoryAllocation", 1, 0, is_injected=True
                ),
            ),
            count=3,
        ),
    ),
)


RESULTS = (
    SQUEEZE,
    other(
        "pool/trim",
        "reference",
        Verdict.PASSED,
        operations=3,
        timeline=(Sample(0, "trim", "done", 9, 0, 0, 0),),
    ),
    other("tape/diamond", "reference", Verdict.BROKEN_CASE, reason="the fault 'tape.leaks' did not turn it red"),
    other("tape/diamond", "host", Verdict.UNSUPPORTED, reason="it lacks tape"),
    other("pool/squeeze_before_oom", "host", Verdict.NOT_PROMISED, reason="no promise of reclaims-before-oom"),
    other(
        "streams/recycled_handle",
        "opencl",
        Verdict.KNOWN_UPSTREAM,
        reason="opencl 1.0-1.2: vendor#7",
        findings=(
            Finding(
                "nothing_left_at_quiescence",
                "events == 0",
                "events == 1 (größe 字)",
                evidence="pool: 1 event\n\x1b[31mred\x1b[0m",
                kind="handle leak",
                grade=Grade.LIVE_LEAK,
            ),
        ),
    ),
    LEAK,
    other("streams/slow", "opencl", Verdict.INCONCLUSIVE, reason="the foreign process grew as well"),
)


@pytest.fixture
def failing() -> Result:
    return SQUEEZE


@pytest.fixture
def unresolved() -> Result:
    return other("./client", "cuda:12", Verdict.INCONCLUSIVE, reason="nothing was tested", must_conclude=True)


@pytest.fixture
def leaking() -> Result:
    return LEAK


@pytest.fixture
def program() -> Result:
    """Return what a program did, with the call sites of its finding."""
    return USED_AFTER_FREE


@pytest.fixture
def report() -> Report:
    return Report(seed=7, results=RESULTS, run={"machine": "Linux x86_64", "started": "2026-01-01T00:00:00+00:00"})


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from .chromium import launched

    with launched() as opened:
        yield opened
