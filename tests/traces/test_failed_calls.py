"""Which failed calls are told, and which leave a run without a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.judge.failed_calls import failures_of, last_refusal, needless, unsurvived
from quiesce.simulator.judge.known_errors import KnownError
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.failed_calls import FailureLog, LoggedFailure

IGNORED = LoggedFailure("cudaMemcpyAsync", 1, 3, 2, 7, 0, is_injected=False, is_afterwards=False)
NOTICED = replace(IGNORED, function="cudaMemset", unnoticed=0, number=5)
KNOWN = KnownError("cudaMemcpy*", "", 1, "on purpose", None)


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def log(*failures: LoggedFailure, lost: int = 0) -> FailureLog:
    return FailureLog(failures, lost)


@pytest.mark.parametrize(
    "function",
    [
        "cudaLaunchKernel",
        "cudaLaunchCooperativeKernel",
        "cudaLaunchKernelExC_ptsz",
        "cudaMemcpy2DAsync",
        "cudaMemset",
        "cudaFree",
        "cudaFreeHost",
        "cudaStreamWaitEvent",
        "cudaEventRecordWithFlags",
        "cudaEventSynchronize",
        "cudaDeviceSynchronize",
        "cudaGraphInstantiate",
        "cudaGraphLaunch",
        "cudaStreamEndCapture",
        "cuLaunchKernel",
        "cuLaunchKernel_ptsz",
        "cuMemcpyHtoDAsync_v2",
        "cuMemsetD32_v2_ptds",
        "cuMemFree_v2",
        "cuMemFreeAsync",
        "cuCtxSynchronize",
        "cuStreamWaitValue32_v2",
        "cuEventRecord",
        "hipModuleLaunchKernel",
        "hipExtModuleLaunchKernel",
        "hipMemcpyDtoH",
        "hipFreeAsync",
        "hipStreamSynchronize_spt",
    ],
)
def test_refused_work_leaves_no_verdict_unless_somebody_looks(function: str) -> None:
    ignored = replace(IGNORED, function=function)
    assert failures_of(log(ignored), None).unchecked()
    assert not failures_of(log(replace(ignored, unnoticed=0)), None).unchecked()
    assert not failures_of(log(replace(ignored, is_injected=True)), None).unchecked()
    assert not failures_of(log(replace(ignored, is_afterwards=True)), None).unchecked()


@pytest.mark.parametrize(
    "function",
    ["cudaMalloc", "cudaStreamDestroy", "cuModuleUnload", "cudaFuncSetAttribute", "hipEventDestroy", "cuInit"],
)
def test_other_calls_are_told_alone(function: str) -> None:
    failures = failures_of(log(replace(IGNORED, function=function)), None)
    assert [each.site.call for each in failures.told.kept] == [function]
    assert not failures.unchecked()
    assert not list(failures.findings())


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("cuPointerGetAttribute", 1),
        ("cuPointerGetAttributes", 1),
        ("hipPointerGetAttributes", 1),
        ("cuCtxGetDevice", 201),
        ("cuCtxGetCurrent", 3),
        ("cuCtxPopCurrent_v2", 201),
        ("cuDevicePrimaryCtxRelease_v2", 201),
        ("cudaDeviceEnablePeerAccess", 704),
        ("cuCtxEnablePeerAccess", 704),
        ("cuDeviceGetAttribute", 1),
        ("cuModuleGetGlobal_v2", 500),
        ("cuGetProcAddress_v2", 500),
        ("cudaSetDeviceFlags", 708),
        ("cudaGraphExecUpdate", 910),
        ("hipGraphExecUpdate", 910),
    ],
)
def test_questions_of_clients_are_no_news(function: str, answer: int) -> None:
    failures = failures_of(log(replace(IGNORED, function=function, answer=answer)), None)
    assert not failures.told.count
    assert not list(failures.lines())


def test_an_answer_that_is_no_probe_is_told() -> None:
    told = failures_of(log(replace(IGNORED, function="cudaGetDeviceProperties", answer=101)), None).told
    assert [(each.site.call, each.error) for each in told.kept] == [
        ("cudaGetDeviceProperties", "cudaErrorInvalidDevice")
    ]


def test_what_nobody_looked_at_comes_first_and_says_so() -> None:
    injected = replace(IGNORED, function="cudaMalloc", answer=2, is_injected=True, number=1, count=1)
    broken = replace(IGNORED, function="cudaFree", answer=700, is_afterwards=True)
    failures = failures_of(log(injected, NOTICED, IGNORED, broken), None)
    assert list(failures.lines()) == [
        "failed: cudaMemcpyAsync with error 1 (cudaErrorInvalidValue), 3 times; the program did not look at the error",
        "failed: cudaMalloc with error 2 (cudaErrorMemoryAllocation), 1 time; --fail asked for it",
        "failed: cudaMemset with error 1 (cudaErrorInvalidValue), 3 times",
        "3 calls failed because a device was unusable",
    ]
    (finding,) = failures.findings()
    assert (finding.rule, finding.seen, finding.kind) == ("errors_of_refused_work_are_noticed", 2, "swallowed error")


def test_many_calls_are_counted_and_the_important_ones_kept() -> None:
    noticed = [replace(NOTICED, number=number) for number in range(200)]
    failures = failures_of(log(*noticed, IGNORED), None)
    assert (failures.told.count, len(failures.told.kept)) == (201, 100)
    assert failures.told.kept[0].unnoticed == 2
    assert [*failures.lines()][-1] == "failed: 191 other calls"


def test_failures_that_found_no_room_leave_no_verdict() -> None:
    assert failures_of(log(lost=2), None).unchecked() == "2 failed calls found no room in the list of failed calls"


def test_a_known_error_is_told_with_its_reason() -> None:
    other = KnownError("cudaFree", "", None, "old", None)
    failures = failures_of(log(IGNORED), None, (other, KNOWN))
    assert not failures.unchecked()
    (line,) = failures.lines()
    assert line.endswith("3 times; known: on purpose")
    assert list(needless((other, KNOWN), failures.known)) == [
        "--known-errors: the entry for cudaFree is not needed: no such call failed"
    ]
    assert failures_of(log(replace(IGNORED, answer=400)), None, (KNOWN,)).unchecked()


def test_a_crash_is_told_with_the_last_call_that_was_made_to_fail() -> None:
    first = replace(IGNORED, function="cudaMalloc", answer=2, is_injected=True, number=1)
    last = replace(first, function="cudaMallocAsync", number=4)
    small = replace(first, is_injected=False, number=9)
    assert last_refusal(log(first, last, small, IGNORED), is_small=False) is last
    assert last_refusal(log(first, last, small, IGNORED), is_small=True) is small
    assert last_refusal(log(IGNORED, small), is_small=False) is None
    finding = unsurvived(last, None, "SIGABRT")
    assert (
        finding.observed == "SIGABRT ended the program, after cudaMallocAsync with error 2 (cudaErrorMemoryAllocation)"
    )
    assert (finding.rule, finding.kind) == ("programs_survive_refusals", "crash")
