"""Programs that end in the middle of something: their ledgers stay readable, and what is said of them is true."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.programs import compile_client

from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import Judgement, judge
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import Seen, Thing, open_ledger
from quiesce.simulator.runtime.stacks import open_stacks

pytestmark = [pytest.mark.usefixtures("library"), pytest.mark.long]

ANGRY_THREADS: Final = """
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
volatile int rounds;
void *churn(void *unused) {
    void *blocks[16] = {0}, *stream, *event;
    for (unsigned i = 0;; i++) {
        cudaFree(blocks[i % 16]);
        cudaMalloc(&blocks[i % 16], i % 5000);
        if (i % 8 == 0) {
            cudaStreamCreate(&stream), cudaEventCreate(&event), cudaEventRecord(event, stream);
            cudaMemsetAsync(blocks[i % 16], 0, i % 5000, stream);
            cudaStreamDestroy(stream), cudaEventDestroy(event);
        }
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    }
    return unused;
}
void begin(int threads) {
    pthread_t thread;
    while (threads--) pthread_create(&thread, 0, churn, 0);
}
void await(int wanted) { while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < wanted) sched_yield(); }
"""


def program(folder: Path, body: str) -> Path:
    """Compile a program that has threads which never rest."""
    return compile_client(folder, f"return ended();\n}}\n{ANGRY_THREADS}\nint ended(void) {{\n{body}")


def ended(path: Path, *words: str, **options: str | int) -> tuple[int, list[Judgement], list[dict[str, int]]]:
    """Run to the end; read every ledger as a whole, judge it, and compare its counts with its table."""
    settings = MachineSettings(parse_flavour("cuda:12"), options=options)
    judgements, counts = [], []
    with run_program([str(path), *words], settings, os.environ) as end:
        for each in end.ledgers:
            with open_ledger(each) as ledger, open_stacks(each) as stacks:
                live = list(ledger.live())
                assert all(thing.thing and thing.function.startswith("cuda") for thing in live)
                assert all(record.function for record in ledger.records())
                serials = [thing.serial for thing in live]
                assert len(set(serials)) == len(serials)
                assert not serials or max(serials) <= ledger.made
                if stacks is not None:
                    assert all(stacks.stack(thing.stack) for thing in live if thing.stack)
                counted = sum(ledger.counted(thing)[0] for thing in Thing)
                counts.append({"table": len(live), "counted": counted, "observations": ledger.observations})
                judgements.append(judge(ledger, AtExit.LOST, stacks))
        return end.status, judgements, counts


@pytest.mark.parametrize("rounds", [1, 7, 100, 1001])
@pytest.mark.parametrize("stacks", [0, 1])
def test_a_program_is_killed_in_the_middle_of_calls(rounds: int, stacks: int, tmp_path: Path) -> None:
    path = program(tmp_path, f"begin(3); await({rounds}); kill(getpid(), SIGKILL); return 0;")
    status, (judgement,), (counts,) = ended(path, stacks=stacks)
    assert status == -signal.SIGKILL
    assert judgement.findings == ()
    assert "leaks were not judged: the process did not run its exit handlers" in judgement.notes
    assert abs(counts["table"] - counts["counted"]) <= 1, "one thing at most was half made"
    assert counts["observations"] > rounds


@pytest.mark.long
def test_a_child_of_a_process_in_the_middle_of_calls_is_refused_and_never_waits(tmp_path: Path) -> None:
    body = """
    begin(3);
    for (int i = 0; i < 30; i++) {
        await(1 + i * 20);  // before the first call a child has a device of its own
        int status = 0;
        if (fork() == 0) {
            alarm(60);
            void *made;
            _exit(cudaMalloc(&made, 8) == 3 && cudaFree(0) == 3 && cudaStreamCreate(&made) == 3 ? 0 : 1);
        }
        wait(&status);
        if (status) return 1 + (status & 127);
    }
    kill(getpid(), SIGKILL);
    return 0;"""
    status, judgements, _ = ended(program(tmp_path, body))
    assert status == -signal.SIGKILL
    assert [judgement.findings for judgement in judgements] == [()], (
        "a child has no ledger of its own, nor its parent's"
    )


@pytest.mark.long
def test_a_child_that_was_forked_around_the_first_call_does_not_wait(tmp_path: Path) -> None:
    body = """
    int status = 0;
    begin(3);
    if (fork() == 0) {
        alarm(60);
        void *made;
        _exit(cudaMalloc(&made, 8) % 3 || cudaFree(0) % 3);
    }
    wait(&status);
    kill(getpid(), status ? SIGABRT : SIGKILL);
    return 0;"""
    path = program(tmp_path, body)
    assert [ended(path)[0] for _ in range(5)] == [-signal.SIGKILL] * 5


@pytest.mark.long
def test_an_exit_beside_threads_in_calls_ends_and_accuses_nobody(tmp_path: Path) -> None:
    status, (judgement,), _ = ended(program(tmp_path, "begin(3); await(500); return 0;"))
    assert status == 0
    assert judgement.findings == (), "what the threads hold stands on their stacks"


def test_a_handler_that_exits_in_the_middle_of_calls_accuses_nobody(tmp_path: Path) -> None:
    body = """
    struct sigaction action = {.sa_handler = exit};
    sigaction(SIGALRM, &action, 0);
    cudaFree(0);  // there is a ledger
    ualarm(20000, 0);
    churn(0);
    return 0;"""
    status, (judgement,), _ = ended(program(tmp_path, body))
    assert status == signal.SIGALRM, "exit() was given the signal's number"
    assert judgement.findings == ()


@pytest.mark.parametrize("threads", [0, 1])
def test_an_exit_between_making_a_block_and_handing_it_out_is_not_judged(threads: int, tmp_path: Path) -> None:
    body = f"""
    extern int armed;
    void *made, *rest(void *);
    pthread_t thread;
    if ({threads}) pthread_create(&thread, 0, rest, 0);
    cudaFree(0);
    armed = 1;
    return cudaMalloc(&made, 64);
    }}
    void *rest(void *unused) {{ pause(); return unused; }}
    int armed;
    void *calloc(size_t count, size_t size) {{  // the runtime asks for the table of its first chunk of blocks
        if (armed) exit(5);
        void *memory = malloc(count * size);
        return memory ? memset(memory, 0, count * size) : memory;"""
    path = program(tmp_path, body)
    status, (judgement,), (counts,) = ended(path)
    assert (status, counts["table"]) == (5, 1), "the block was made"
    assert judgement.findings == ()
    assert "leaks were not judged: the process did not run its exit handlers" in judgement.notes


def test_a_stack_that_overflows_in_calls(tmp_path: Path) -> None:
    body = """
    int deep(int level) {
        void *p;
        volatile char room[2000];
        cudaMalloc(&p, 8);
        room[0] = level;
        return deep(level + 1) + room[0];
    }
    return deep(0);"""
    for stacks in (0, 1):
        status, (judgement,), (counts,) = ended(compile_client(tmp_path, body), stacks=stacks)
        assert status == -signal.SIGSEGV
        assert counts["table"] > 100
        assert judgement.findings == ()


@pytest.mark.parametrize(
    ("ending", "status", "judged"),
    [
        ("quick_exit(4);", 4, False),
        ("exit(4);", 4, True),
        ("_exit(4);", 4, False),
        ("abort();", -signal.SIGABRT, False),
        ("raise(SIGTERM);", -signal.SIGTERM, False),
        ("pthread_t t; pthread_create(&t, 0, (void *(*)(void *))exit, (void *)4); pause();", 4, True),
        ('char *w[] = {"/bin/true", 0}; execv(w[0], w);', 0, False),
    ],
)
def test_only_an_exit_that_runs_handlers_judges_what_is_held(
    ending: str, status: int, judged: bool, tmp_path: Path
) -> None:
    body = f"for (int i = 0; i < 9; i++) {{ void *lost; cudaMalloc(&lost, 64); }} {ending} return 0;"
    found, (judgement,), _ = ended(program(tmp_path, body))
    assert found == status
    assert [finding.rule for finding in judgement.findings] == ["nothing_is_left_at_quiescence"] * judged
    if not judged:
        assert any(re.match(r"held at its end: .* in 9 blocks of device memory", line) for line in judgement.held)


def test_threads_that_end_leave_what_they_made(tmp_path: Path) -> None:
    body = """
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, (void *(*)(void *))cudaFree, 0);
        pthread_join(thread, 0);
    }
    void *made[3];
    cudaMalloc(&made[0], 8), cudaFree(made[0]);
    return 0;"""
    status, (judgement,), _ = ended(program(tmp_path, body), stacks=1)
    assert (status, judgement.findings) == (0, ())


def test_a_call_of_another_thread_behind_the_exit_is_told_that_the_runtime_goes(tmp_path: Path) -> None:
    body = """
    void *ask(void *p) { while (cudaMalloc(&p, 8) == 0) cudaFree(p), rounds++; _exit(cudaMalloc(&p, 8)); }
    pthread_t thread;
    pthread_create(&thread, 0, ask, 0);
    await(10);
    return 0;"""
    status, (judgement,), _ = ended(program(tmp_path, body))
    assert status in (0, 4), "whichever of the two ends the process first"
    assert judgement.findings == ()


def test_a_process_that_is_killed_in_its_first_call_left_no_ledger(tmp_path: Path) -> None:
    program = tmp_path / "program.sh"
    program.write_text('#!/bin/sh\ntruncate -s 1000000 "${QUIESCE_SIMULATOR##*folder=}/7.ledger"\n', encoding="utf-8")
    program.chmod(0o755)
    assert ended(program) == (0, [], [])


def test_a_python_program_that_is_killed_by_its_watchdog(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import ctypes, os, signal, threading\n"
        "runtime = ctypes.CDLL('libcudart.so.12')\n"
        "def churn():\n"
        "    while True:\n"
        "        made = ctypes.c_void_p()\n"
        "        runtime.cudaMalloc(ctypes.byref(made), 64)\n"
        "        runtime.cudaFree(made)\n"
        "for _ in range(3): threading.Thread(target=churn, daemon=True).start()\n"
        "for _ in range(200): runtime.cudaDeviceSynchronize()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
        encoding="utf-8",
    )
    settings = MachineSettings(parse_flavour("cuda:12"), options={"stacks": 1})
    with run_program([sys.executable, str(script)], settings, os.environ) as end:
        assert end.status == -signal.SIGKILL
        with open_ledger(end.ledgers[0]) as ledger, open_stacks(end.ledgers[0]) as stacks:
            assert stacks is not None
            made = [record for record in ledger.records() if record.seen is Seen.ALLOCATED]
            shown = {stacks.stack(record.stack) for record in made}
            assert all(stack and stack.python[0].function == "churn" for stack in shown)
            assert judge(ledger, AtExit.LOST, stacks).findings == ()
