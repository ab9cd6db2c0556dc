"""System calls that read or write pinned memory while a copy may use it: they work, and are accesses of the host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.programs import compile_client
from tests.simulator.test_host_accesses import judged

from quiesce.model.program_rules import ORDERED

pytestmark = pytest.mark.usefixtures("library")

BEGIN: Final = """
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
enum { BYTES = 3 * 4096, TO_DEVICE = 1, TO_HOST = 2 };
int cudaStreamCreateWithFlags(handle *, unsigned);
handle stream, other;
char *device, *host, small[10];
int pipes[2], sockets[2], file;
volatile pid_t reader;
void get(void) { cudaMemcpyAsync(host, device, BYTES, TO_HOST, stream); }
void put(void) { cudaMemcpyAsync(device, host, BYTES, TO_DEVICE, stream); }
void need(long is_so) { if (!is_so) { perror("a call"); abort(); } }
void all(long count) { need(count == BYTES); }
struct iovec vector[3];
struct msghdr message = {.msg_iov = vector, .msg_iovlen = 3};
struct mmsghdr messages[1] = {{{.msg_iov = vector, .msg_iovlen = 3}, 0}};
void fill_pipe(void) { all(write(pipes[1], device, BYTES)); }
void fill_socket(void) { all(write(sockets[1], device, BYTES)); }
void *read_pipe(void *unused) { reader = gettid(); all(read(pipes[0], host, BYTES)); return unused; }
int sleeps(void) {
    char path[64], text[256];
    sprintf(path, "/proc/self/task/%d/syscall", reader);
    FILE *about = fopen(path, "r");
    int is_there = about && fgets(text, sizeof text, about) && atoi(text) == SYS_read && text[0] == '0';
    if (about) fclose(about);
    return is_there;
}
void act(const char *what) {
"""
MIDDLE: Final = """
}
int begin(const char *what) {
    cudaStreamCreateWithFlags(&stream, 1), cudaStreamCreateWithFlags(&other, 1);
    cudaHostAlloc((void **)&host, BYTES, 0), cudaMalloc((void **)&device, BYTES);
    memset(host, 1, BYTES), cudaMemset(device, 3, BYTES), cudaDeviceSynchronize();
    need(!pipe(pipes)), need(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    vector[0] = (struct iovec){small, 10}, vector[1] = (struct iovec){host, BYTES - 10};
    vector[2] = (struct iovec){small, 0};
    file = open("/dev/zero", O_RDWR);
    act(what);
    cudaDeviceSynchronize();
    cudaFreeHost(host), cudaFree(device), cudaStreamDestroy(stream), cudaStreamDestroy(other);
    return 0;
"""

WRITES: Final = {
    "read": "get(); all(read(file, host, BYTES));",
    "what-is-read": "put(); all(read(file, host, BYTES));",
    "pread": "get(); all(pread(file, host, BYTES, 0));",
    "readv": "get(); all(readv(file, vector, 3));",
    "preadv": "get(); all(preadv(file, vector, 3, 0));",
    "preadv2": "get(); all(preadv2(file, vector, 3, 0, 0));",
    "recv": "fill_socket(); get(); all(recv(sockets[0], host, BYTES, 0));",
    "recvfrom": "fill_socket(); get(); all(recvfrom(sockets[0], host, BYTES, 0, 0, 0));",
    "recvmsg": "fill_socket(); get(); all(recvmsg(sockets[0], &message, 0));",
    "recvmmsg": "fill_socket(); get(); need(recvmmsg(sockets[0], messages, 1, 0, 0) == 1); all(messages[0].msg_len);",
    "getrandom": "get(); need(getrandom(host, 100, 0) == 100);",
    "fread": 'FILE *in = fopen("/dev/zero", "r"); get(); need(fread(host, 4096, 3, in) == 3); fclose(in);',
}
READS: Final = {
    "write": "get(); all(write(pipes[1], host, BYTES));",
    "pwrite": "get(); all(pwrite(file, host, BYTES, 0));",
    "writev": "get(); all(writev(file, vector, 3));",
    "pwritev": "get(); all(pwritev(file, vector, 3, 0));",
    "send": "get(); all(send(sockets[0], host, BYTES, 0));",
    "sendto": "get(); all(sendto(sockets[0], host, BYTES, 0, 0, 0));",
    "sendmsg": "get(); all(sendmsg(sockets[0], &message, 0));",
    "sendmmsg": "get(); need(sendmmsg(sockets[0], messages, 1, 0) == 1); all(messages[0].msg_len);",
    "fwrite": 'FILE *out = fopen("/dev/null", "w"); get(); need(fwrite(host, 4096, 3, out) == 3); fclose(out);',
}
FAULTY: Final = {
    **WRITES,
    **READS,
    "work-comes-while-a-thread-reads": "pthread_t thread; pthread_create(&thread, 0, read_pipe, 0); "
    "while (!reader || !sleeps()); get(); fill_pipe(); pthread_join(thread, 0);",
}
CORRECT: Final = {
    "waited": "get(); cudaStreamSynchronize(stream); all(write(pipes[1], host, BYTES)); all(read(file, host, BYTES));",
    "only-reads": "put(); all(write(pipes[1], host, BYTES));",
    "comes-short": "cudaMemcpyAsync(host + 4096, device, 4096, TO_HOST, stream); "
    "need(write(pipes[1], small, 10) == 10); need(read(pipes[0], host, BYTES) == 10);",
    "comes-short-in-a-vector": "cudaMemcpyAsync(host + 4096, device, 4096, TO_HOST, stream); "
    "need(write(sockets[1], device, 20) == 20); need(recvmsg(sockets[0], &message, 0) == 20);",
    "fails": "get(); errno = 0; need(read(-1, host, BYTES) == -1 && errno == EBADF);",
    "wrong-address": "get(); errno = 0; need(readv(file, (struct iovec *)16, 2) == -1 && errno == EFAULT);",
    "wrong-address-of-bytes": "get(); errno = 0; need(read(file, (void *)16, 2) == -1 && errno == EFAULT);",
    "child": "get(); int status; pid_t child = fork(); if (!child) _exit(read(file, host, BYTES) == BYTES ? 7 : 1); "
    "waitpid(child, &status, 0); need(WEXITSTATUS(status) == 7);",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    acts = "".join(f'if (!strcmp(what, "{name}")) {{ {body} }}\n' for name, body in {**FAULTY, **CORRECT}.items())
    body = f"return begin(words[1]);\n}}\n{BEGIN}{acts}{MIDDLE}"
    return compile_client(tmp_path_factory.mktemp("calls"), body, flags=("-g", "-pthread", "-D_GNU_SOURCE"))


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("name", FAULTY)
def test_a_system_call_is_an_access_of_the_host(program: Path, name: str, schedule: str) -> None:
    status, judgement = judged(program, name, schedule)
    assert status == 0
    assert [finding.rule for finding in judgement.findings] == [ORDERED]
    said = f"read of the host in {name}" if name in READS else f"write of the host in {name if name in WRITES else ''}"
    if name == "what-is-read":
        said = "write of the host in read"
    assert re.search(rf"before a {said}", judgement.findings[0].expected)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("name", CORRECT)
def test_a_system_call_that_is_ordered_or_uses_other_bytes_is_none(program: Path, name: str, schedule: str) -> None:
    status, judgement = judged(program, name, schedule)
    assert (status, judgement.findings) == (0, ())


PYTHON: Final = """
import ctypes, os, socket
cuda = ctypes.CDLL("libcudart.so.12")
host, device = ctypes.c_void_p(), ctypes.c_void_p()
SIZE = 8192
assert not cuda.cudaHostAlloc(ctypes.byref(host), ctypes.c_size_t(SIZE), 0)
assert not cuda.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(SIZE))
assert not cuda.cudaMemset(device, 3, ctypes.c_size_t(SIZE))
memory = memoryview((ctypes.c_char * SIZE).from_address(host.value)).cast("B")
file = open("/dev/zero", "rb+", buffering=0)
one, other = socket.socketpair()
other.sendall(bytes(2 * SIZE))
def read_into(): return file.readinto(memory)
def read_at(): return os.preadv(file.fileno(), [memory], 0)
def receive(): return one.recv_into(memory)
def receive_message(): return one.recvmsg_into([memory])[0]
def write(): return file.write(memory)
def send(): return one.send(memory)
def call_by_address(): return ctypes.CDLL("libc.so.6").read(file.fileno(), host, SIZE)
for act in read_into, read_at, receive, receive_message, write, send, call_by_address:
    assert not cuda.cudaMemcpyAsync(host, device, ctypes.c_size_t(SIZE), 2, None)
    assert act() == SIZE
    assert not cuda.cudaDeviceSynchronize()
assert not cuda.cudaFree(device) and not cuda.cudaFreeHost(host)
"""


def test_python_reads_files_and_sockets_into_pinned_memory() -> None:
    command = [sys.executable, "-m", "quiesce", "exec", "--", sys.executable, "-c", PYTHON]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    told = re.findall(r"expected: .* before a (\w+ of the host in [a-z]+)", done.stdout)
    assert told == [
        *("write of the host in read", "write of the host in preadv"),
        *("write of the host in recv", "write of the host in recvmsg"),
        *("read of the host in write", "read of the host in send", "write of the host in read"),
    ]
    for name in ("read_into", "read_at", "receive", "receive_message", "write", "send", "call_by_address"):
        assert re.search(rf"\d in {name}\b", done.stdout)
