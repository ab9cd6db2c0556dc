"""Accesses of the host to memory that a copy or kernel may still use: seen, and left alone once it was waited for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.kernel_programs import ADD, HEADER, INDEX, entry
from tests.simulator.programs import compile_client

from quiesce.model.program_rules import ORDERED
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import Judgement, judge
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger

pytestmark = pytest.mark.usefixtures("library")

BEGIN: Final = """
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
enum { BYTES = 10000, TO_DEVICE = 1, TO_HOST = 2 };
int cudaStreamCreateWithFlags(handle *, unsigned), cudaEventQuery(handle);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpy2DAsync(void *, size_t, const void *, size_t, size_t, size_t, int, handle);
int cudaHostRegister(void *, size_t, unsigned), cudaHostUnregister(void *);
int cudaStreamBeginCapture(handle, int), cudaStreamEndCapture(handle, handle *), cudaGraphDestroy(handle);
int cudaGraphInstantiate(handle *, handle, unsigned long long), cudaGraphExecDestroy(handle);
int cudaGraphLaunch(handle, handle);
handle stream, other, event, graph, executable;
char *device, *host, *beside, *heap, *own;
volatile int sum;
void get(void) { cudaMemcpyAsync(host, device, BYTES, TO_HOST, stream); }
void put(void) { cudaMemcpyAsync(device, host, BYTES, TO_DEVICE, stream); }
void get_own(void) { cudaMemcpyAsync(own, device, BYTES, TO_HOST, stream); }
void put_own(void) { cudaMemcpyAsync(device, own, BYTES, TO_DEVICE, stream); }
void *read_own(void *unused) { for (int i = 0; i < BYTES; i++) sum += own[i]; return unused; }
void capture(void (*work)(void)) {
    cudaStreamBeginCapture(stream, 0), work(), cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0), cudaGraphDestroy(graph);
}
void fill(void) { cudaMemsetAsync(host, 5, BYTES, stream); }
void fork_and_join(void) {
    cudaEventRecord(event, stream), cudaStreamWaitEvent(other, event, 0), get();
    cudaMemcpyAsync(beside, device, 100, TO_HOST, other);
    cudaEventRecord(event, other), cudaStreamWaitEvent(stream, event, 0);
}
void *read_all(void *unused) { for (int i = 0; i < BYTES; i++) sum += host[i]; return unused; }
void read_in_order(void *unused) { read_all(unused); }
volatile int is_told, is_written;
void write_when_told(void *unused) { while (!is_told); host[77] = 1, is_written = 1; }
void handle_fault(int number) { signal(number, SIG_DFL); }
sigjmp_buf place;
void leave(int number) { (void)number; siglongjmp(place, 1); }
void leave_by_its_place(int number, siginfo_t *about, void *state) {
    (void)state;
    if (number != SIGSEGV || (long)about->si_addr != 16) _exit(3);
    siglongjmp(place, 1);
}
int is_fault_handled(void) {
    if (sigsetjmp(place, 1)) return 1;
    *(volatile char *)16 = 1;
    return 0;
}
void need(int is_so) { if (!is_so) abort(); }
void (*installed(void))(int) { struct sigaction now; sigaction(SIGSEGV, 0, &now); return now.sa_handler; }
void install_leaving(int flags) {
    struct sigaction leaving = {.sa_sigaction = leave_by_its_place, .sa_flags = SA_SIGINFO | flags};
    sigaction(SIGSEGV, &leaving, 0);
}
void install_without_the_library(void) {
    struct { void (*handler)(int); unsigned long flags; void *restorer; unsigned long mask; } own = {handle_fault};
    syscall(SYS_rt_sigaction, SIGSEGV, &own, 0, 8);
}
void act(const char *what) {
"""
MIDDLE: Final = """
}
int begin(const char *what) {
    cudaStreamCreateWithFlags(&stream, 1), cudaStreamCreateWithFlags(&other, 1), cudaEventCreate(&event);
    cudaHostAlloc((void **)&host, BYTES, 0), cudaHostAlloc((void **)&beside, 100, 0);
    cudaMalloc((void **)&device, BYTES);
    heap = aligned_alloc(4096, 4 * 4096), own = heap + 100;
    memset(heap, 1, 4 * 4096), cudaHostRegister(own, BYTES, 0);
    memset(host, 1, BYTES), cudaMemset(device, 3, BYTES), cudaDeviceSynchronize();
    act(what);
    cudaDeviceSynchronize();
    if (executable) cudaGraphExecDestroy(executable);
    cudaHostUnregister(own), free(heap);
    cudaFreeHost(host), cudaFreeHost(beside), cudaFree(device);
    cudaEventDestroy(event), cudaStreamDestroy(stream), cudaStreamDestroy(other);
    return sum == -1;
"""

FAULTY: Final = {
    "read-too-early": "get(); sum += host[77];",
    "written-while-it-is-read": "put(); host[77] = 4;",
    "written-before-it-is-overwritten": "get(); host[77] = 4;",
    "waits-for-another-stream": "get(); cudaStreamSynchronize(other); sum += host[9999];",
    "waits-for-another-blocking-stream": "handle a, b; cudaStreamCreate(&a), cudaStreamCreate(&b); "
    "cudaMemcpyAsync(host, device, BYTES, TO_HOST, a); cudaMemsetAsync(beside, 1, 1, b); cudaStreamSynchronize(b); "
    "sum += host[1]; cudaStreamSynchronize(a); cudaStreamDestroy(a), cudaStreamDestroy(b);",
    "event-is-older-than-the-copy": "cudaEventRecord(event, stream); get(); cudaEventSynchronize(event); "
    "sum += host[1];",
    "fill": "cudaMemsetAsync(host, 5, BYTES, stream); sum += host[4096];",
    "rounded-up": "cudaMemcpyAsync(host, device, BYTES - 50, TO_HOST, stream); sum += host[9000];",
    "rows": "cudaMemcpy2DAsync(host, 1000, device, 1000, 500, 10, TO_HOST, stream); sum += host[5100];",
    "after-a-second-copy": "get(); put(); sum += host[77];",
    "another-thread": "get(); pthread_t thread; pthread_create(&thread, 0, read_all, 0); pthread_join(thread, 0);",
    "unordered-host-function": "get(); cudaLaunchHostFunc(other, read_in_order, 0); cudaStreamSynchronize(other);",
    "copy-of-a-graph": "capture(get); cudaGraphLaunch(executable, stream); sum += host[77];",
    "what-a-copy-of-a-graph-reads": "capture(put); cudaGraphLaunch(executable, stream); host[77] = 1;",
    "fill-of-a-graph": "capture(fill); cudaGraphLaunch(executable, stream); sum += host[77];",
    "second-launch-of-a-graph": "capture(get); cudaGraphLaunch(executable, stream); cudaStreamSynchronize(stream); "
    "read_all(0); cudaGraphLaunch(executable, stream); sum += host[77];",
    "graph-that-an-event-does-not-follow": "capture(get); cudaEventRecord(event, stream); "
    "cudaGraphLaunch(executable, stream); cudaEventSynchronize(event); sum += host[77];",
    "branch-of-a-graph": "capture(fork_and_join); cudaGraphLaunch(executable, stream); sum += beside[7];",
    "handler-before": "signal(SIGSEGV, leave); get(); need(installed() == leave); sum += host[77]; "
    "need(is_fault_handled()); signal(SIGSEGV, SIG_DFL);",
    "handler-afterwards": "get(); need(installed() == SIG_DFL); signal(SIGSEGV, leave); need(installed() == leave); "
    "sum += host[77]; need(is_fault_handled()); need(signal(SIGSEGV, SIG_DFL) == leave && installed() == SIG_DFL);",
    "registered": "get_own(); sum += own[5000];",
    "registered-and-written": "put_own(); own[5000] = 1;",
    "registered-and-read-from-a-file": "put_own(); "
    'if (read(open("/dev/zero", O_RDONLY), heap, 16384) != 16384) abort();',
    "registered-and-read-by-two-threads": "get_own(); pthread_t threads[2]; "
    "for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, read_own, 0); "
    "for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);",
}
CORRECT: Final = {
    "stream": "get(); cudaStreamSynchronize(stream); read_all(0);",
    "device": "get(); cudaDeviceSynchronize(); read_all(0);",
    "event": "get(); cudaEventRecord(event, stream); cudaEventSynchronize(event); read_all(0);",
    "query": "get(); while (cudaStreamQuery(stream)); read_all(0);",
    "query-of-an-event": "get(); cudaEventRecord(event, stream); while (cudaEventQuery(event)); read_all(0);",
    "by-another-stream": "get(); cudaEventRecord(event, stream); cudaStreamWaitEvent(other, event, 0); "
    "cudaStreamSynchronize(other); read_all(0);",
    "by-the-default-stream": "handle a, b; cudaStreamCreate(&a), cudaStreamCreate(&b); "
    "cudaMemcpyAsync(host, device, BYTES, TO_HOST, a); cudaMemsetAsync(device, 1, 1, 0); "
    "cudaMemsetAsync(device, 1, 1, b); cudaStreamSynchronize(b); "
    'if (write(open("/dev/null", O_WRONLY), host, BYTES) != BYTES) abort(); '
    "read_all(0); cudaStreamDestroy(a), cudaStreamDestroy(b);",
    "default-stream": "handle a; cudaStreamCreate(&a); cudaMemcpyAsync(host, device, BYTES, TO_HOST, a); "
    "while (cudaStreamQuery(0)); read_all(0); cudaStreamDestroy(a);",
    "host-function": "get(); cudaLaunchHostFunc(stream, read_in_order, 0);",
    "host-function-before-a-copy": "cudaLaunchHostFunc(stream, write_when_told, 0); put(); is_told = 1; "
    "while (!is_written) cudaStreamQuery(stream);",
    "host-function-before-a-copy-of-another-stream": "cudaLaunchHostFunc(stream, write_when_told, 0); "
    "cudaEventRecord(event, stream); cudaStreamWaitEvent(other, event, 0); "
    "cudaMemcpyAsync(device, host, BYTES, TO_DEVICE, other); is_told = 1; cudaStreamSynchronize(stream);",
    "synchronous-copy": "cudaMemcpy(host, device, BYTES, TO_HOST); read_all(0);",
    "free": "get(); cudaFreeHost(beside); read_all(0); cudaHostAlloc((void **)&beside, 100, 0);",
    "only-read": "put(); read_all(0); cudaStreamSynchronize(stream); host[5] = 1;",
    "block-beside": "cudaMemcpyAsync(host, device, 100, TO_HOST, stream); beside[0] = 1; sum += beside[99];",
    "bytes-behind": "cudaMemcpyAsync(host, device, 5000, TO_HOST, stream); "
    "for (int i = 5000; i < BYTES; i++) host[i] = 1;",
    "bytes-behind-in-the-last-page": "cudaMemcpyAsync(host, device, BYTES - 50, TO_HOST, stream); host[BYTES - 1] = 1;",
    "between-rows": "cudaMemcpy2DAsync(host, 1000, device, 1000, 500, 10, TO_HOST, stream); sum += host[5700];",
    "read-from-a-file": 'cudaMemcpyAsync(host, device, 5000, TO_HOST, stream); int file = open("/dev/zero", O_RDONLY); '
    "if (read(file, host + 5000, 5000) != 5000) abort();",
    "child": "get(); int status; pid_t child = fork(); if (!child) { read_all(0); _exit(7); } "
    "waitpid(child, &status, 0); if (WEXITSTATUS(status) != 7) abort();",
    "graph": "capture(get); read_all(0); cudaGraphLaunch(executable, stream); cudaStreamSynchronize(stream); "
    "read_all(0); host[77] = 1;",
    "graph-and-an-event": "capture(get); cudaGraphLaunch(executable, stream); cudaEventRecord(event, stream); "
    "cudaEventSynchronize(event); read_all(0);",
    "graph-on-two-streams": "capture(get); cudaGraphLaunch(executable, stream); cudaGraphLaunch(executable, other); "
    "cudaStreamSynchronize(other); read_all(0);",
    "branches-of-a-graph": "capture(fork_and_join); for (int i = 0; i < 3; i++) { "
    "cudaGraphLaunch(executable, stream); cudaStreamSynchronize(stream); sum += beside[7]; read_all(0); }",
    "only-read-by-a-graph": "capture(put); cudaGraphLaunch(executable, stream); read_all(0);",
    "handlers-between": "get(); cudaStreamSynchronize(stream); signal(SIGSEGV, leave); get(); "
    "need(is_fault_handled() && is_fault_handled()); cudaStreamSynchronize(stream); signal(SIGSEGV, SIG_DFL); "
    "get(); cudaStreamSynchronize(stream); install_leaving(SA_RESETHAND); get(); need(is_fault_handled()); "
    "need(installed() == SIG_DFL); install_leaving(0); need(is_fault_handled()); signal(SIGSEGV, leave); "
    "if (!sigsetjmp(place, 1)) { raise(SIGSEGV); abort(); }",
    "sent-and-ignored": "get(); signal(SIGSEGV, SIG_IGN); raise(SIGSEGV); signal(SIGSEGV, SIG_DFL);",
    "registered-and-waited": "get_own(); cudaStreamSynchronize(stream); read_own(0); put_own(); read_own(0);",
    "beside-registered": "get_own(); for (int i = 0; i < 100; i++) heap[i] = 1; "
    "for (int i = BYTES + 100; i < 16384; i++) heap[i] = 1;",
    "registered-and-staged": "get_own(); cudaStreamSynchronize(stream); put_own(); "
    "cudaMemcpyAsync(device, heap, 16384 / 2, TO_DEVICE, stream);",
    "registered-by-a-child": "get_own(); int status; pid_t child = fork(); if (!child) { read_own(0); _exit(7); } "
    "waitpid(child, &status, 0); if (WEXITSTATUS(status) != 7) abort();",
    "registered-read-only": "char *text = mmap(0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); "
    "cudaHostRegister(text, 8192, 0), cudaMemcpyAsync(device, text, 8192, TO_DEVICE, stream); "
    "cudaStreamSynchronize(stream), cudaHostUnregister(text); "
    'if (read(open("/dev/zero", O_RDONLY), text, 1) != -1) abort();',
    "registered-on-the-stack": "char text[3 * 4096]; cudaHostRegister(text, sizeof text, 0); "
    "cudaMemcpyAsync(device, text, BYTES, TO_DEVICE, stream), cudaStreamSynchronize(stream); cudaHostUnregister(text);",
    "many-copies": "for (int i = 0; i < 3000; i++) cudaMemcpyAsync(host + i, device, 1, TO_HOST, stream); "
    "cudaStreamSynchronize(stream); read_all(0);",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    acts = "".join(
        f'if (!strcmp(what, "{name}")) {{ {body} }}\n' for name, body in {**FAULTY, **CORRECT, **ENDINGS}.items()
    )
    body = f"return begin(words[1]);\n}}\n{BEGIN}{acts}{MIDDLE}"
    return compile_client(tmp_path_factory.mktemp("hosts"), body, flags=("-g", "-pthread", "-D_GNU_SOURCE"))


ENDINGS: Final = {
    "a-fault-of-its-own": "get(); *(volatile char *)16 = 1;",
    "a-fault-after-its-handler": "get(); signal(SIGSEGV, handle_fault); *(volatile char *)16 = 1;",
    "a-signal-that-is-sent": "get(); raise(SIGSEGV);",
    "a-handler-of-its-own": "get(); cudaStreamSynchronize(stream); install_without_the_library(); get();",
}


def judged(program: Path, name: str, schedule: str = "eager") -> tuple[int, Judgement]:
    settings = MachineSettings(parse_flavour("cuda:12"), schedule, options={"hosts": 1})
    with run_program([str(program), name], settings, os.environ) as end:
        (path,) = end.ledgers
        with open_ledger(path) as ledger:
            return end.status, judge(ledger, AtExit.LOST)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("name", FAULTY)
def test_an_access_that_nothing_orders_is_a_race(program: Path, name: str, schedule: str) -> None:
    status, judgement = judged(program, name, schedule)
    assert status == 0
    assert [finding.rule for finding in judgement.findings] == [ORDERED]
    (finding,) = judgement.findings
    assert re.search(r"before a (read|write) of the host( in read)? \(call \d+\)$", finding.expected)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("name", CORRECT)
def test_an_access_that_is_ordered_is_none(program: Path, name: str, schedule: str) -> None:
    status, judgement = judged(program, name, schedule)
    assert (status, judgement.findings) == (0, ())


@pytest.mark.parametrize("name", ["a-fault-of-its-own", "a-fault-after-its-handler", "a-signal-that-is-sent"])
def test_a_fault_of_the_program_ends_it(program: Path, name: str) -> None:
    status, _ = judged(program, name)
    assert status in (-signal.SIGSEGV, 128 + signal.SIGSEGV)


def test_a_program_that_handles_faults_itself_is_told_that_its_accesses_are_not_judged(program: Path) -> None:
    status, judgement = judged(program, "a-handler-of-its-own")
    assert status == 0
    assert [text for text in judgement.unjudged if "the program handles SIGSEGV itself" in text]


_PARAMETERS: Final = ".param .u64 to, .param .u32 value, .param .u32 count"
READ_INTO: Final = ADD.replace("add(", "read(").replace("st.global.u32 [%rd1], %r6;", "")
TELL: Final = entry(
    "tell",
    _PARAMETERS,
    INDEX + "setp.ne.u32 %p1, %r1, 0;\n@%p1 ret;\nld.param.u64 %rd1, [to];\nmov.u32 %r6, 7;\n"
    "st.global.u32 [%rd1+4], %r6;\nmembar.sys;\nst.volatile.global.u32 [%rd1], %r6;",
)
"""Writes a word, and then another one by which the host learns of it."""
KERNELS: Final = f"""
import ctypes, sys
act = sys.argv[1]
cuda, driver = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcuda.so.1")
memory, beside = ctypes.c_void_p(), ctypes.c_void_p()
stream, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
assert not cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
for each in (memory, beside):
    if act.startswith("managed"):
        assert not cuda.cudaMallocManaged(ctypes.byref(each), ctypes.c_size_t(8000), 1)
    else:
        assert not cuda.cudaHostAlloc(ctypes.byref(each), ctypes.c_size_t(8000), 0)
words, others = ((ctypes.c_uint32 * 2000).from_address(each.value) for each in (memory, beside))
text = {(HEADER + ADD + READ_INTO + TELL).encode()!r}
assert not driver.cuModuleLoadData(ctypes.byref(module), text)
def launch(name, value=2):
    count = 1100 if name == b"most" else 2000
    name = name.replace(b"most", b"add")
    assert not driver.cuModuleGetFunction(ctypes.byref(function), module, name)
    values = memory, ctypes.c_uint32(value), ctypes.c_uint32(count)
    given = (ctypes.c_void_p * 3)(*(ctypes.addressof(each) for each in values))
    assert not driver.cuLaunchKernel(function, 8, 1, 1, 256, 1, 1, 0, stream, given, None)
def wait():
    assert not cuda.cudaStreamSynchronize(stream)
words[1999] = 1
match act.partition("-")[2]:
    case "read":
        launch(b"add"); assert words[1999]
    case "write":
        launch(b"add"); words[5] = 1
    case "write-what-is-read":
        launch(b"read"); words[5] = 1
    case "wait":
        launch(b"add"); wait(); assert words[1999] == 3
    case "again":
        launch(b"add"); launch(b"add"); wait(); assert words[1999] == 5
    case "only-read":
        launch(b"read"); assert words[1999] == 1
    case "beside":
        launch(b"add"); others[5] = 1
    case "write-after-read":
        launch(b"read"); assert not words[5]; words[6] = 1
    case "another-page":
        launch(b"most"); assert not words[1500]; words[1998] = 1; words[5] += 1
    case "bytes-beside":
        launch(b"most"); assert words[1999] == 1; words[1500] = 1; assert not words[1400]
    case "graph":
        assert not cuda.cudaStreamBeginCapture(stream, 0)
        launch(b"add")
        assert not cuda.cudaStreamEndCapture(stream, ctypes.byref(graph))
        assert not cuda.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_uint64(0))
        assert words[1999] == 1
        for round in range(2):
            assert not cuda.cudaGraphLaunch(executable, stream)
            if round or act.startswith("pinned"): words[5] = 1
            wait()
        assert not cuda.cudaGraphExecDestroy(executable) and not cuda.cudaGraphDestroy(graph)
    case "told":
        launch(b"add"); launch(b"tell")
        while words[0] != 7: cuda.cudaStreamQuery(stream)
        assert words[1] == 7; words[1999] = 5
wait()
for each in (memory, beside):
    assert not (cuda.cudaFree if act.startswith("managed") else cuda.cudaFreeHost)(each)
assert not driver.cuModuleUnload(module) and not cuda.cudaStreamDestroy(stream)
"""


@pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")
@pytest.mark.long
@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
@pytest.mark.parametrize("memory", ["pinned", "managed"])
@pytest.mark.parametrize(
    ("act", "what"),
    [
        ("read", "writes them"),
        ("write", "writes them"),
        ("write-what-is-read", "reads them"),
        ("write-after-read", "reads them"),
        ("another-page", "writes them"),
        ("graph", "writes them"),
        ("bytes-beside", ""),
        ("wait", ""),
        ("again", ""),
        ("only-read", ""),
        ("beside", ""),
        ("told", ""),
    ],
)
def test_what_a_kernel_uses_is_watched_until_the_host_waits_for_it(
    memory: str, act: str, what: str, schedule: str
) -> None:
    command = [sys.executable, "-m", "quiesce", "exec", "--kernels", "run", "--schedule", schedule]
    words = [*command, "--", sys.executable, "-c", KERNELS, f"{memory}-{act}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if what else 0), done.stdout + done.stderr
    rules = re.findall(r"rule: +(\w+)", done.stdout)
    assert rules == ([ORDERED] if what else [])
    assert what in done.stdout
    assert not what or re.search(r"expected: .* before a (read|write) of the host \(call \d+\)", done.stdout)
