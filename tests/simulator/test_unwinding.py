"""Native stacks that are known again: a remembered one is given only where the whole stack is the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger
from quiesce.simulator.runtime.stacks import open_stacks

pytestmark = pytest.mark.usefixtures("library")

FUNCTIONS = """
int pthread_create(unsigned long *, const void *, void *(*)(void *), void *), pthread_join(unsigned long, void **);
#define KEEP __attribute__((noinline))
KEEP void *make(int size) { void *p; cudaMalloc(&p, size); __asm__ volatile(""); return p; }
KEEP void *first(int size) { void *p = make(size); __asm__ volatile(""); return p; }
KEEP void *second(int size) { void *p = make(size); __asm__ volatile(""); return p; }
KEEP void *deep(int size, int left) {
    void *p = left ? deep(size, left - 1) : make(size); __asm__ volatile(""); return p; }
KEEP void *wide(int size, int room) {
    char *more = __builtin_alloca(room); more[0] = 1; __asm__ volatile("" :: "r"(more) : "memory");
    void *p = size & 1 ? first(size) : second(size); __asm__ volatile(""); return p; }
KEEP int by_size(const void *a, const void *b) {
    make(100 + *(const int *)a); __asm__ volatile(""); return *(const int *)a - *(const int *)b; }
void *thread(void *size) { void *p = first((int)(long)size); __asm__ volatile(""); return p; }
"""


def functions_by_size(folder: Path, body: str) -> dict[int, list[str]]:
    """Run a program and return the functions of each block's stack up to main, by its size."""
    program = compile_client(folder, FUNCTIONS + body + " return 0;")
    settings = MachineSettings(parse_flavour("cuda:12"), options={"stacks": 1})
    found: dict[int, list[str]] = {}
    with run_program([str(program)], settings, os.environ) as ended:
        (path,) = ended.ledgers
        with open_ledger(path) as ledger, open_stacks(path) as stacks:
            assert stacks is not None
            for thing in ledger.live():
                stack = stacks.stack(thing.stack)
                assert stack is not None
                names = [frame.function.partition(".")[0] for frame in stack.native]  # these are local to main
                found[thing.size_bytes] = names[: names.index("main") + 1] if "main" in names else names
    return found


def test_callers_at_the_same_depth_are_told_apart_however_often_they_take_turns(tmp_path: Path) -> None:
    body = "for (int i = 0; i < 50; i++) { first(1 + 2 * i); second(2 + 2 * i); }"
    for size, names in functions_by_size(tmp_path, body).items():
        assert names == ["make", "first" if size % 2 else "second", "main"], size


def test_each_depth_of_a_recursion_has_its_own_stack(tmp_path: Path) -> None:
    body = "for (int again = 0; again < 3; again++) for (int i = 0; i < 30; i++) deep(100 * again + i + 1, i);"
    for size, names in functions_by_size(tmp_path, body).items():
        assert names.count("deep") == (size - 1) % 100 + 1, size


def test_room_that_a_function_takes_at_run_time_misleads_nobody(tmp_path: Path) -> None:
    body = "for (int i = 1; i < 60; i++) wide(i, 16 * (i % 7 + 1));"
    for size, names in functions_by_size(tmp_path, body).items():
        assert names == ["make", "first" if size % 2 else "second", "wide", "main"], size


def test_threads_that_follow_one_another_on_the_same_memory_are_told_apart(tmp_path: Path) -> None:
    body = """
    for (long i = 1; i < 9; i++) { unsigned long t; pthread_create(&t, 0, thread, (void *)i); pthread_join(t, 0); }"""
    for names in functions_by_size(tmp_path, body).values():
        assert names[:3] == ["make", "first", "thread"]


def test_a_callback_of_a_library_is_seen_through_it(tmp_path: Path) -> None:
    body = "int n[] = {3, 1, 2}; qsort(n, 3, sizeof *n, by_size);"
    for names in functions_by_size(tmp_path, body).values():
        assert names[:2] == ["make", "by_size"]
        assert names[-1] == "main"
