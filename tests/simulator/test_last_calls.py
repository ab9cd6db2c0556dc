"""What a program loses right after it used it is lost, though quiesce itself has notes of the last call."""

from __future__ import annotations

import os
import sys
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.kernel_programs import HEADER, entry
from tests.simulator.programs import compile_client

from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import Reach, open_ledger

pytestmark = [
    pytest.mark.usefixtures("library"),
    pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux"),
]

BYTES: Final = 4000
PTX: Final = HEADER + entry(
    "set",
    ".param .u64 to, .param .u64 from",
    "ld.param.u64 %rd1, [to];\nld.param.u64 %rd2, [from];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\n"
    "add.u64 %rd1, %rd1, %rd3;\nld.global.u32 %r2, [%rd2];\nst.global.u32 [%rd1], %r2;",
)
PROGRAM: Final = """
    return run(words[1], words[2], words[3]);
}
#include <dlfcn.h>
struct extent { size_t width, height, depth; };
struct channels { int x, y, z, w, kind; };
int cudaMallocManaged(void **, size_t, unsigned);
int cudaMallocArray(handle *, struct channels *, size_t, size_t, unsigned);
int cudaMemcpy2DToArray(handle, size_t, size_t, const void *, size_t, size_t, size_t, int);
int cudaStreamBeginCapture(handle, int), cudaStreamEndCapture(handle, handle *), cudaGraphDestroy(handle);
int cudaGraphInstantiateWithFlags(handle *, handle, unsigned long long);
int cudaGraphLaunch(handle, handle), cudaGraphExecDestroy(handle);
typedef unsigned number;
typedef int module_load_type(handle *, const void *), module_get_type(handle *, handle, const char *);
typedef int start_type(handle, number, number, number, number, number, number, number, handle, void **, void **);
static void *driver, *other;
static handle stream, function, graph;  // not given back: this is about one block
static int failed;
static const char ptx[] = PTX;
#define CHECK(call) (failed |= (call))
static void load(void) {
    module_load_type *module_load = (module_load_type *)dlsym(driver, "cuModuleLoadData");
    module_get_type *module_get = (module_get_type *)dlsym(driver, "cuModuleGetFunction");
    handle module;
    CHECK(module_load(&module, ptx));
    CHECK(module_get(&function, module, "set"));
}
static void launch(void *to) {
    start_type *start = (start_type *)dlsym(driver, "cuLaunchKernel");
    void *from = other, *arguments[] = {&to, &from};
    CHECK(start(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}
static void ignore(void *data) { (void)data; }
static void make(const char *kind, void **made) {
    struct channels channels = {32, 0, 0, 0, 0};
    if (!strcmp(kind, "device")) CHECK(cudaMalloc(made, BYTES));
    if (!strcmp(kind, "managed")) CHECK(cudaMallocManaged(made, BYTES, 1));
    if (!strcmp(kind, "pinned")) CHECK(cudaHostAlloc(made, BYTES, 0));
    if (!strcmp(kind, "pool")) CHECK(cudaMallocAsync(made, BYTES, stream));
    if (!strcmp(kind, "array")) CHECK(cudaMallocArray(made, &channels, 50, 20, 0));
}
static void use(const char *kind, const char *last, void *made) {
    char host[64] = {0};
    handle event, captured;
    int is_array = !strcmp(kind, "array");
    if (is_array || !strcmp(last, "copy")) {
        if (is_array)
            CHECK(cudaMemcpy2DToArray(made, 0, 0, host, 4, 4, 1, 1));
        else
            CHECK(cudaMemcpyAsync(made, host, 64, 1, stream));
    }
    if (!is_array && strcmp(last, "copy")) CHECK(cudaMemsetAsync(made, 0, BYTES, stream));
    if (!strcmp(last, "kernel")) launch(is_array ? other : made);
    if (!strcmp(last, "free")) {
        void *freed;
        make(kind[0] == 'a' ? "device" : kind, &freed);
        CHECK(kind[0] == 'p' && kind[1] == 'i' ? cudaFreeHost(freed) : cudaFree(freed));
    }
    if (!strcmp(last, "event")) {
        CHECK(cudaEventCreate(&event));
        CHECK(cudaEventRecord(event, stream));
        CHECK(cudaEventSynchronize(event));
        CHECK(cudaEventDestroy(event));
    }
    if (!strcmp(last, "host function")) CHECK(cudaLaunchHostFunc(stream, ignore, made));
    if (!strcmp(last, "graph")) {
        CHECK(cudaStreamBeginCapture(stream, 2));
        if (is_array) CHECK(cudaMemsetAsync(other, 0, 64, stream));
        else launch(made);
        CHECK(cudaStreamEndCapture(stream, &captured));
        CHECK(cudaGraphInstantiateWithFlags(&graph, captured, 0));
        CHECK(cudaGraphDestroy(captured));
        CHECK(cudaGraphLaunch(graph, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
}
static __attribute__((noinline)) void work(const char *kind, const char *last, const char *fate) {
    void *made;
    make(kind, &made);
    use(kind, last, made);
    if (!strcmp(fate, "kept")) kept = made;
}
static __attribute__((noinline)) void cover(void) { memset(__builtin_alloca(4096), 0, 4096); }
int run(const char *kind, const char *last, const char *fate) {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&other, 64));
    CHECK(cudaMemset(other, 0, 64));
    load();
    work(kind, last, fate);
    cover();
    return failed;
"""
KINDS: Final = ("device", "managed", "pinned", "pool", "array")
LAST_CALLS: Final = ("kernel", "copy", "fill", "free", "event", "host function", "graph")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that gets a kind of memory, its last call, and whether the memory is kept or lost."""
    text = '"' + PTX.replace("\n", "\\n") + '"'
    body = PROGRAM.replace("= PTX", f"= {text}").replace("BYTES", str(BYTES))
    return compile_client(tmp_path_factory.mktemp("last"), body)


def reach(program: Path, *words: str) -> list[Reach]:
    """Return how what a run left is reached."""
    settings = MachineSettings(parse_flavour("cuda:12"), kernels=kernels_can_run())
    with run_program([str(program), *words], settings, os.environ) as ended:
        assert ended.status == 0
        with open_ledger(ended.ledgers[0]) as ledger:
            return [thing.reach for thing in ledger.live() if thing.size_bytes == BYTES]


@pytest.mark.parametrize(("kind", "last"), [*product(KINDS, LAST_CALLS)])
def test_what_was_used_last_is_lost(kind: str, last: str, program: Path) -> None:
    assert reach(program, kind, last, "lost") == [Reach.LOST]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_variable_keeps_is_held(kind: str, program: Path) -> None:
    assert reach(program, kind, "kernel", "kept") == [Reach.HELD]
