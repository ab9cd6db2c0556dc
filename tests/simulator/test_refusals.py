"""Who asked for a device and got none is noted by the process itself, with the file that called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quiesce.simulator.runtime.failed_calls import Refusal, RefusalKind, read_refusals
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import Ended, MachineSettings, run_program

from .programs import compile_client

pytestmark = pytest.mark.usefixtures("library")

CUDA = parse_flavour("cuda:12")
TABLE = """
    void *dlopen(const char *, int), *dlsym(void *, const char *), *table;
    int (*ask)(void **, void *) = (int (*)(void **, void *))dlsym(dlopen("libcuda.so.1", 2), "cuGetExportTable");
    if (ask(&table, NULL) != 801) return 1;
"""


def refusals_of(ended: Ended) -> list[tuple[Refusal, ...]]:
    return [read_refusals(path) for path in (*ended.ledgers, *ended.refused)]


def run(tmp_path: Path, body: str, **options: str) -> list[tuple[Refusal, ...]]:
    program = compile_client(tmp_path, body + "return 0;")
    with run_program([str(program)], MachineSettings(CUDA, options=options), os.environ) as ended:
        assert ended.status == 0
        return refusals_of(ended)


@pytest.mark.parametrize(
    ("body", "function"),
    [
        ("cudaMallocMipmappedArray();", "cudaMallocMipmappedArray"),
        (TABLE, "cuGetExportTable"),
        (
            "int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, int *), (*found)(void), result;"
            'cudaGetDriverEntryPoint("cuGraphicsGLRegisterBuffer", (void **)&found, 0, &result); found();',
            "cuGraphicsGLRegisterBuffer",
        ),
    ],
)
def test_a_function_that_is_not_simulated_names_its_caller(tmp_path: Path, body: str, function: str) -> None:
    """Once, however often it is called."""
    client = str((tmp_path / "client").resolve())
    assert run(tmp_path, f"for (int i = 0; i < 2; i++) {{ {body} }}") == [
        (Refusal(RefusalKind.NOT_SIMULATED, function, 801, client),)
    ]


def test_a_library_that_calls_is_named_in_place_of_the_program(tmp_path: Path) -> None:
    library = compile_client(tmp_path, TABLE + "return 0;", name="libclient.so", flags=("-shared", "-fPIC"))
    body = (
        "void *dlopen(const char *, int), *dlsym(void *, const char *);"
        f'int (*begin)(int, char **) = (int (*)(int, char **))dlsym(dlopen("{library}", 2), "main");'
        "begin(0, NULL);"
    )
    ((refusal,),) = run(tmp_path, body)
    assert refusal.caller == str(library.resolve())


@pytest.mark.parametrize(
    ("body", "refusals"),
    [
        ("int cudaSetDevice(int); cudaSetDevice(3); cudaSetDevice(3);", [("failed", "cudaSetDevice", 101)]),
        ("void *p; cudaMalloc(&p, 8); cudaFree((char *)p + 1); cudaFree(p);", []),
        ("cudaStreamQuery(NULL);", []),
    ],
)
def test_what_fails_before_anything_was_made_is_noted_once(
    tmp_path: Path, body: str, refusals: list[tuple[str, str, int]]
) -> None:
    (noted,) = run(tmp_path, body)
    assert [(each.kind, each.function, each.status) for each in noted] == refusals


def test_a_failure_that_was_asked_for_is_told_apart(tmp_path: Path) -> None:
    ((armed, failed),) = run(tmp_path, "void *s; cudaStreamCreate(&s);", fail="stream:1")
    assert armed == Refusal(RefusalKind.ARMED, "cudaStreamCreate", 2)
    assert failed == Refusal(RefusalKind.FAILED, "cudaStreamCreate", 2)


def test_a_child_of_fork_has_a_log_and_no_ledger(tmp_path: Path) -> None:
    body = """
    int wait(int *); void *p;
    cudaMalloc(&p, 8);
    if (!fork()) _exit(cudaMalloc(&p, 8) != 3);
    int status; wait(&status);
    cudaFree(p);
    if (status) return 1;
    """
    assert run(tmp_path, body) == [(), (Refusal(RefusalKind.FORKED, "cudaMalloc", 3),)]


def test_a_process_that_was_replaced_keeps_the_log_that_it_left(tmp_path: Path) -> None:
    body = """
    cudaMallocMipmappedArray();
    if (count == 1) execl("/proc/self/exe", "client", "again", NULL);
    """
    noted = run(tmp_path, body)
    assert [[each.function for each in refusals] for refusals in noted] == [["cudaMallocMipmappedArray"]] * 2


def test_the_last_line_of_a_killed_process_may_be_cut(tmp_path: Path) -> None:
    (tmp_path / "7.refusals").write_text("failed\tcuInit\t100\t\nnot simulated\tcuX\t801\t/a\tb\nforked\tcudaMa")
    assert read_refusals(tmp_path / "7.ledger") == (
        Refusal(RefusalKind.FAILED, "cuInit", 100),
        Refusal(RefusalKind.NOT_SIMULATED, "cuX", 801, "/a\tb"),
    )
    assert read_refusals(tmp_path / "8.ledger") == ()
