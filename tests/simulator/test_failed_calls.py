"""Calls that failed are counted by function, error and place, and so is how often nobody looked at the error."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.programs import DECLARATIONS, compile_client

from quiesce.model.errors import QuiesceError
from quiesce.simulator.runtime.failed_calls import HEADER, FailureLog, error_name, read_failures
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program

pytestmark = [
    pytest.mark.usefixtures("library"),
    pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux"),
]

BEGIN: Final = """
    int cudaGetLastError(void), cudaPeekAtLastError(void), cudaEventQuery(handle), cudaGraphLaunch(handle, handle);
    const char *cudaGetErrorString(int), *cudaGetErrorName(int);
    handle stream, event;
    void *block;
    cudaMalloc(&block, 64), cudaStreamCreate(&stream), cudaEventCreate(&event);
"""
LOOKED_AT: Final = """
    cudaMemset(NULL, 0, 8); cudaMemset(NULL, 0, 8); cudaGetLastError();
    cudaEventRecord(NULL, stream); cudaGetErrorString(400);
    cudaStreamWaitEvent(stream, NULL, 0); cudaGetErrorName(400);
"""
IGNORED: Final = """
    for (int i = 0; i < 3; i++) cudaGraphLaunch(NULL, stream);
    cudaMemsetAsync(block, 0, 8, (handle)9); cudaPeekAtLastError();
    cudaEventSynchronize(NULL); cudaGetErrorName(719); cudaGetErrorString(0);
"""
NO_FAILURES: Final = """
    cudaMemsetAsync(block, 0, 64, stream); cudaEventRecord(event, stream); cudaEventQuery(event);
    cudaMallocMipmappedArray(); cudaDeviceSynchronize();
"""
DRIVER: Final = """
    void *dlopen(const char *, int), *dlsym(void *, const char *), *driver = dlopen("libcuda.so.1", 2);
    int cudaGetLastError(void);
    int (*initialize)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*empty)(size_t) = (int (*)(size_t))dlsym(driver, "cuMemFree_v2");
    int (*fill)(size_t, unsigned char, size_t) = (int (*)(size_t, unsigned char, size_t))dlsym(driver, "cuMemsetD8_v2");
    int (*name)(int, const char **) = (int (*)(int, const char **))dlsym(driver, "cuGetErrorName");
    const char *text;
    void *block;
    cudaMalloc(&block, 8);
    initialize(0), empty(1), cudaGetLastError(), fill(0, 0, 8), name(1, &text);
    empty(3), cudaGetLastError(), name(201, &text);
"""
THREADS: Final = """
    int cudaGetLastError(void);
    int pthread_create(unsigned long *, void *, void *(*)(void *), void *), pthread_join(unsigned long, void **);
    unsigned long thread;
    cudaMemset(NULL, 0, 8);
    pthread_create(&thread, NULL, (void *(*)(void *))cudaGetLastError, NULL), pthread_join(thread, NULL);
"""
CHILD: Final = """
    int cudaGetLastError(void), wait(int *), status;
    const char *cudaGetErrorString(int);
    cudaMemset(NULL, 0, 8);
    if (!fork()) {
        cudaGetLastError(), cudaGetErrorString(1), cudaMemset(NULL, 0, 8);
        _exit(0);
    }
    wait(&status);
    if (status) return 1;
"""
REFUSED_IN_A_HOST_FUNCTION: Final = """
    cudaLaunchHostFunc(NULL, (void (*)(void *))cudaDeviceSynchronize, NULL), cudaDeviceSynchronize();
"""
MANY: Final = """
    int fail(void);
    return fail();
}
static int (*volatile functions[2])(int, int);
#define STEP(name) static int name(int depth, int number) {                         \\
    if (depth == 10) return cudaMemset(NULL, 0, 8) + 1; /* no call is the last */   \\
    return functions[number & 1](depth + 1, number >> 1) + 1;                       \\
}
STEP(left) STEP(right)
int fail(void) {
    functions[0] = left, functions[1] = right;
    for (int number = 0; number < 1024; number++) left(0, number);
"""


def run(folder: Path, body: str, *, flavour: str = "cuda:12", **options: str | int) -> FailureLog:
    """Compile and run a program; return what its process noted."""
    simulated = parse_flavour(flavour)
    if flavour.startswith("hip"):
        declared = re.findall(r"^int .*;$", DECLARATIONS, re.MULTILINE)
        body = "\n".join((*declared, body)).replace("cuda", "hip").replace("cublas", "hipblas")
    client = compile_client(folder, body + "\nreturn 0;", runtime=simulated.sonames[0], flags=("-pthread",))
    settings = MachineSettings(simulated, "lazy", options=options)
    with run_program([str(client)], settings, dict(os.environ)) as ended:
        assert ended.status == 0
        (path,) = ended.ledgers
        return read_failures(path)


def told(log: FailureLog) -> list[tuple[str, int, int, int]]:
    """Return each function without the library's prefix, its error, and how often it failed and was ignored."""
    assert not log.lost
    name = re.compile("^(cuda|cu|hip)")
    return [(name.sub("", each.function), each.answer, each.count, each.unnoticed) for each in log.failures]


@pytest.mark.parametrize(("flavour", "no_graph"), [("cuda:12", 1), ("hip:6", 1)])
def test_an_error_is_noticed_where_it_is_fetched_or_looked_up(tmp_path: Path, flavour: str, no_graph: int) -> None:
    log = run(tmp_path, BEGIN + LOOKED_AT + NO_FAILURES + IGNORED, flavour=flavour)
    assert told(log) == [
        ("Memset", 1, 2, 0),
        ("EventRecord", 400, 1, 0),
        ("StreamWaitEvent", 400, 1, 0),
        ("GraphLaunch", no_graph, 3, 3),
        ("MemsetAsync", 400, 1, 1),
        ("EventSynchronize", 400, 1, 1),
    ]
    assert not any(each.is_injected or each.is_afterwards for each in log.failures)


def test_the_driver_keeps_no_error_and_is_asked_what_one_means(tmp_path: Path) -> None:
    assert told(run(tmp_path, DRIVER)) == [
        ("MemFree_v2", 1, 2, 1),
        ("MemsetD8_v2", 1, 1, 0),
    ]


def test_an_error_is_that_of_its_thread(tmp_path: Path) -> None:
    assert told(run(tmp_path, THREADS)) == [("Memset", 1, 1, 1)]


def test_a_child_of_fork_looks_at_errors_of_its_own(tmp_path: Path) -> None:
    assert told(run(tmp_path, CHILD)) == [("Memset", 1, 1, 1)]


def test_a_call_that_a_host_function_may_not_make_is_named_by_itself(tmp_path: Path) -> None:
    assert told(run(tmp_path, REFUSED_IN_A_HOST_FUNCTION)) == [("DeviceSynchronize", 800, 1, 1)]


def test_what_was_asked_for_and_what_a_broken_device_refuses_is_marked(tmp_path: Path) -> None:
    body = (
        "void *p, *q; cudaMalloc(&p, 8), cudaMalloc(&q, 8), cudaMemset(p, 0, 8), cudaDeviceSynchronize(), cudaFree(p);"
    )
    (refused,) = run(tmp_path, body, fail="device:2").failures
    assert (refused.function, refused.answer, refused.is_injected) == ("cudaMalloc", 2, True)
    broken = run(tmp_path, body, fail="synchronize:1=700").failures
    assert [(each.function, each.is_injected, each.is_afterwards) for each in broken] == [
        ("cudaDeviceSynchronize", True, True),
        ("cudaFree", False, True),
    ]


def test_there_is_no_file_where_nothing_failed(tmp_path: Path) -> None:
    assert run(tmp_path, "void *p; cudaMalloc(&p, 8), cudaFree(p);") == FailureLog((), 0)


def test_too_many_places_are_counted_together(tmp_path: Path) -> None:
    log = run(tmp_path, MANY, stacks=1)
    placed = [each for each in log.failures if each.stack]
    (together,) = [each for each in log.failures if not each.stack]
    assert (len(placed), together.count, sum(each.count for each in placed)) == (768, 256, 768)
    assert not log.lost


def test_a_file_of_another_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.failed"
    path.write_bytes(HEADER.pack(1, 2, 3, 4))
    with pytest.raises(QuiesceError, match="no file of failed calls of layout"):
        read_failures(tmp_path / "1.ledger")
    path.write_bytes(b"\0" * HEADER.size)
    assert read_failures(tmp_path / "1.ledger") == FailureLog((), 0)


@pytest.mark.parametrize(
    ("function", "code", "name"),
    [
        ("cudaMemcpy", 1, "cudaErrorInvalidValue"),
        ("cuMemFree_v2", 201, "CUDA_ERROR_INVALID_CONTEXT"),
        ("hipFree", 400, "hipErrorInvalidHandle"),
        ("cudaFree", 98765, ""),
        ("cuMemFree_v2", 98765, ""),
        ("nvmlInit", 1, ""),
    ],
)
def test_errors_have_the_names_of_their_library(function: str, code: int, name: str) -> None:
    assert error_name(function, code) == name
