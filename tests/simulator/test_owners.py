"""Who owns device memory when a process is searched: memory in use does, and freed memory does not."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.programs import compile_client

from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import Reach, open_ledger

pytestmark = [
    pytest.mark.usefixtures("library"),
    pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux"),
]

SETTINGS: Final = MachineSettings(parse_flavour("cuda:12"))

PRELUDE: Final = """
    return run();
}
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
int cudaMallocManaged(void **, size_t, unsigned), cudaHostRegister(void *, size_t, unsigned);
int cudaMemcpy(void *, const void *, size_t, int);
void *volatile global;
void *sleeper(void *none) { for (;;) pause(); return none; }
void **map(void *at) { return mmap(at, 1 << 20, 3, 0x100022, -1, 0); }
void **alone(int number) { return map((char *)0x123457a89000 + ((size_t)number << 30)); }  // next to nothing
void *block(size_t size) { void *made; cudaMalloc(&made, size); return made; }
void **cell(size_t words, size_t size) { void **made = calloc(words, 8); made[words / 2] = block(size); return made; }
"""

HELD: Final = {
    "a variable": "global = block(100);",
    "a variable that points into the middle": "global = (char *)block(100) + 50;",
    "a block of the C heap": "global = cell(4, 100);",
    "a large block of the C heap": "global = cell(1 << 18, 100);",
    "a chain of blocks": "void **first = calloc(4, 8); first[1] = cell(4, 100); global = first;",
    "a pointer with a mark in its lowest bit": "global = (void *)((uintptr_t)cell(4, 100) | 1);",
    "a pointer with marks in its highest bits": "global = (void *)((uintptr_t)cell(4, 100) | 0xabcdull << 48);",
    "a block that malloc_usable_size() reaches to": "void **m = malloc(24); m[2] = block(100); global = m;",
    "pinned memory": "void **p; cudaHostAlloc((void **)&p, 4096, 0); p[7] = block(100); global = p;",
    "managed memory": "void **p; cudaMallocManaged((void **)&p, 4096, 1); p[7] = block(100); global = p;",
    "device memory": "void *p = block(64), *d = block(100); cudaMemcpy(p, &d, 8, 1); d = 0; global = p;",
    "an address with marks in its highest bits": "global = (void *)((uintptr_t)block(100) | 0xabcdull << 48);",
    "a packed structure": "struct __attribute__((packed)) { int i; void *p; } *s = malloc(12);"
    " s->p = block(100), global = s;",
    "memory that was made read-only": "void **m = mmap(0, 4096, 3, 0x22, -1, 0);"
    " *m = block(100), mprotect(m, 4096, 1);",
    "a thread-local variable": "static _Thread_local void *volatile own; own = block(100);",
    "a thread's specific value": "pthread_key_t k; pthread_key_create(&k, 0); pthread_setspecific(k, block(100));",
}
UNKNOWN: Final = {
    "a mapping of its own": "void **m = mmap(0, 1 << 20, 3, 0x22, -1, 0); m[700] = block(100); global = m;",
    "memory that children do not get": "void **m = mmap(0, 4096, 3, 0x22, -1, 0);"
    " *m = block(100), madvise(m, 4096, MADV_DONTFORK);",
    "shared memory": "((void **)mmap(0, 1 << 20, 3, 0x21, -1, 0))[700] = block(100);",
    "a mapping that another one points to": "void **m = mmap(0, 1 << 20, 3, 0x22, -1, 0), **n ="
    " mmap(0, 1 << 20, 3, 0x22, -1, 0); n[700] = block(100), m[800] = n, global = m;",
    "a mapping that shared memory points to": "void **m = mmap(0, 1 << 20, 3, 0x22, -1, 0); m[700] = block(100);"
    " *(void **)mmap(0, 4096, 3, 0x21, -1, 0) = m;",
    "a mapping into the middle of which one points": "char *m = mmap(0, 1 << 20, 3, 0x22, -1, 0);"
    " ((void **)m)[7] = block(100), global = m + (1 << 19);",
    "a part of what was reserved at once": "char *m = mmap(0, 1 << 24, 0, 0x4022, -1, 0); mprotect(m, 4096, 3);"
    " mprotect(m + (1 << 23), 4096, 3); ((void **)(m + (1 << 23)))[7] = block(100), global = m;",
}
LOST: Final = {
    "nothing": "block(100);",
    "a freed block": "for (int i = 0; i < 20; i++) { void **c = cell(8, 100 + !!i); free(c); }",
    "a freed block among others": "void **c[99]; for (int i = 0; i < 99; i++) c[i] = cell(i + 2, 100 + !!i);"
    " for (int i = 0; i < 99; i++) free(c[i]); global = malloc(16);",
    "a block that went back to the kernel": "free(cell(1 << 20, 100));",
    "its own content": "void **p; cudaHostAlloc((void **)&p, 100, 0); *p = p;",
}
INDIRECT: Final = {
    "a lost block of the C heap": "cell(8, 100);",
    "a lost large block of the C heap": "cell(1 << 20, 100);",
    "a chain of lost blocks": "void **first = calloc(4, 8); first[1] = cell(4, 100);",
    "a mapping that nobody points to": "alone(0)[700] = block(100);",
    "mappings that point to each other": "void **m = alone(0), **n = alone(1);"
    " n[700] = block(100), m[800] = n, n[900] = m;",
    "a mapping that only a freed block points to": "void **c = malloc(64), **m = alone(0);"
    " m[700] = block(100), c[4] = m, free(c);",
    "a mapping below a thread's stack": "pthread_t t; pthread_create(&t, 0, sleeper, 0); pthread_attr_t a;"
    " pthread_getattr_np(t, &a); void *stack; size_t guard, size; pthread_attr_getstack(&a, &stack, &size);"
    " pthread_attr_getguardsize(&a, &guard); map((char *)stack - guard - (1 << 20))[700] = block(100);",
    "lost pinned memory": "void **p; cudaHostAlloc((void **)&p, 4096, 0); p[7] = block(100);",
    "lost device memory": "void *p = block(64), *d = block(100); cudaMemcpy(p, &d, 8, 1);",
}


def reach_of(program: list[str]) -> dict[int, Reach]:
    """Run a program and return how the blocks that it left are reached, by their sizes."""
    with run_program(program, SETTINGS, os.environ) as ended:
        assert ended.status == 0
        with open_ledger(ended.ledgers[0]) as ledger:
            return {thing.size_bytes: thing.reach for thing in ledger.live()}


def found(folder: Path, body: str) -> Reach:
    """Return how the block of 100 bytes is reached that a C program left."""
    program = compile_client(folder, f"{PRELUDE}int run(void) {{ {body}\n return 0;")
    return reach_of([str(program)])[100]


@pytest.mark.parametrize("owner", HELD)
def test_what_is_in_use_holds(owner: str, tmp_path: Path) -> None:
    assert found(tmp_path, HELD[owner]) is Reach.HELD


@pytest.mark.parametrize("owner", UNKNOWN)
def test_what_nobody_here_can_read_is_told(owner: str, tmp_path: Path) -> None:
    assert found(tmp_path, UNKNOWN[owner]) is Reach.UNKNOWN


@pytest.mark.parametrize("owner", LOST)
def test_what_is_free_holds_nothing(owner: str, tmp_path: Path) -> None:
    assert found(tmp_path, LOST[owner]) is Reach.LOST


@pytest.mark.parametrize("owner", INDIRECT)
def test_what_is_lost_itself_makes_what_it_holds_lost(owner: str, tmp_path: Path) -> None:
    assert found(tmp_path, INDIRECT[owner]) is Reach.INDIRECTLY_LOST


def test_a_block_next_to_memory_of_quiesce_is_not_held_by_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel maps a ledger in such a file system, as in a container's, right below a large block of the C heap."""
    if os.access("/dev/shm", os.W_OK):
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    assert found(tmp_path, INDIRECT["a lost large block of the C heap"]) is Reach.INDIRECTLY_LOST


THREADED: Final = """
pthread_barrier_t both;
void *work(void *held) {
    void *volatile mine = 0;
    WHAT
    pthread_barrier_wait(&both);
    if (STAYS) for (;;) pause();
    return mine ? 0 : 0;
}
int run(void) {
    pthread_t thread;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&thread, 0, work, 0);
    pthread_barrier_wait(&both);
    if (!STAYS) pthread_join(thread, 0);
    usleep(20000);  // until it waits
    return 0;
"""


@pytest.mark.parametrize(
    ("what", "stays", "reach"),
    [
        ("mine = block(100);", 1, Reach.HELD),
        ("mine = cell(8, 100);", 1, Reach.HELD),
        ("static _Thread_local void *volatile own; own = cell(8, 100);", 1, Reach.HELD),
        ("global = cell(8, 100);", 0, Reach.HELD),
        ("mine = block(100);", 0, Reach.LOST),
        ("mine = cell(8, 100);", 0, Reach.INDIRECTLY_LOST),
        ("for (int i = 0; i < 20; i++) free(cell(8, 100 + !!i));", 1, Reach.LOST),
    ],
)
def test_a_thread_holds_while_it_lives(what: str, stays: int, reach: Reach, tmp_path: Path) -> None:
    body = THREADED.replace("WHAT", what).replace("STAYS", str(stays))
    program = compile_client(tmp_path, f"{PRELUDE}{body}")
    assert reach_of([str(program)])[100] is reach


def test_a_registration_is_held_by_whoever_holds_the_memory(tmp_path: Path) -> None:
    body = """
    static char here[300];
    cudaHostRegister(here, 300, 0), cudaHostRegister(global = malloc(400), 400, 0);
    cudaHostRegister(malloc(500), 500, 0);
    cudaHostRegister(mmap(0, 4096, 3, 0x22, -1, 0), 600, 0), cudaHostRegister(mmap(0, 4096, 3, 0x21, -1, 0), 700, 0);
    return 0;"""
    reach = reach_of([str(compile_client(tmp_path, f"{PRELUDE}int run(void) {{{body}"))])
    assert reach == {300: Reach.HELD, 400: Reach.HELD, 500: Reach.LOST, 600: Reach.HELD, 700: Reach.HELD}


def test_a_register_of_a_thread_that_waits_in_the_kernel_may_hold(tmp_path: Path) -> None:
    body = """
    int ends[2], told[2];
    void *work(void *unused) {
        register void *mine __asm__("r12");
        void *volatile made = block(100);
        mine = made, made = 0;
        write(told[1], "", 1);
        long got;
        __asm__ volatile("syscall" : "=a"(got) : "0"(0L), "D"((long)ends[0]), "S"(&got), "d"(1L), "r"(mine)
                         : "rcx", "r11", "memory");
        cudaFree(mine);
        return 0;
    }
    int run(void) {
        char byte;
        pthread_t thread;
        pipe(ends), pipe(told);
        pthread_create(&thread, 0, work, 0);
        read(told[0], &byte, 1);
        usleep(20000);  // until it waits
        return 0;"""
    reach = reach_of([str(compile_client(tmp_path, f"{PRELUDE}{body}"))])
    assert reach[100] in (Reach.UNKNOWN, Reach.HELD)


def test_an_exit_of_a_handler_in_the_middle_of_malloc_ends(tmp_path: Path) -> None:
    """The lock of malloc's arena is taken for ever then: nothing is said to be lost, and nobody waits for it."""
    body = """
    int run(void) {
        block(100);
        struct sigaction action = {.sa_handler = exit};
        sigaction(SIGALRM, &action, 0);
        ualarm(20000, 0);
        for (;;) free(malloc(3000)), free(malloc(200000 + rand() % 1000));
    """
    program = compile_client(tmp_path, f"{PRELUDE}#include <signal.h>\n{body}")
    with run_program([str(program)], SETTINGS, os.environ) as ended, open_ledger(ended.ledgers[0]) as ledger:
        assert ended.status == 14
        assert [thing.size_bytes for thing in ledger.live()] == [100]


def test_a_client_that_waits_for_every_child_takes_nothing_away(tmp_path: Path) -> None:
    body = """
    void *reap(void *unused) { for (;;) waitpid(-1, 0, __WALL); return unused; }
    int run(void) {
        pthread_t thread;
        pthread_create(&thread, 0, reap, 0);
        for (int i = 0; i < 5; i++) block(100);
        return 0;"""
    program = compile_client(tmp_path, f"{PRELUDE}#include <sys/wait.h>\n{body}")
    assert reach_of([str(program)])[100] is Reach.LOST


PYTHON: Final = """
import ctypes
runtime = ctypes.CDLL('libcudart.so.12')
def allocate(size):
    made = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(made), ctypes.c_size_t(size)) == 0
    return made.value
class Owner:
    def __init__(self, address): self.address = address
class Address(int): pass
"""


@pytest.mark.parametrize(
    "owner",
    [
        "kept = allocate(100)",
        "kept = ctypes.c_void_p(allocate(100))",
        "kept = Owner(allocate(100))",
        "kept = {1: [(allocate(100),)]}",
        "kept = Address(allocate(100))",
        "kept = (lambda address: lambda: address)(allocate(100))",
        "kept = (ctypes.c_void_p * 999)(*[0] * 500, allocate(100))",
        "import threading; threading.local().kept = allocate(100); kept = threading.local(); kept.x = allocate(100)",
        "import array; kept = array.array('Q', [0, allocate(100)])",
        "import sys; sys.kept = allocate(100)",
        "def waiting():\n    address = allocate(100)\n    yield address\nkept = waiting(); next(kept)",
    ],
)
def test_live_objects_of_python_hold(owner: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PYTHON + owner + "\n", encoding="utf-8")
    assert reach_of([sys.executable, str(script)])[100] is Reach.HELD


@pytest.mark.parametrize(
    "dropped",
    [
        "allocate(100)",
        "Owner(allocate(100))",
        "[allocate(100)]",
        "[ctypes.c_void_p(allocate(100)) for _ in range(50)]",
        "print(hex(allocate(100)))",
        "Address(allocate(100))",
        "try:\n    raise ValueError(allocate(100))\nexcept ValueError:\n    pass",
        "import threading; t = threading.Thread(target=allocate, args=(100,)); t.start(); t.join()",
        "import sys; allocate(100); sys.exit()",
        "def deep(level): return deep(level - 1) if level else allocate(100)\ndeep(200)",
    ],
)
def test_dropped_objects_of_python_hold_nothing(dropped: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PYTHON + dropped + "\n", encoding="utf-8")
    assert reach_of([sys.executable, str(script)])[100] is Reach.LOST
