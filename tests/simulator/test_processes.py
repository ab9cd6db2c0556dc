"""Memory and events that processes of one run share: IPC handles in CUDA's runtime and driver, and in HIP."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.findings import Finding
from quiesce.model.rules import Kind
from quiesce.simulator.judge import AtExit, JudgeConditions, Process, judge_process
from quiesce.simulator.judge.sharing import NOT_CHECKED, may_signal
from quiesce.simulator.runtime import Touch
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import Seen, Thing

pytestmark = [
    pytest.mark.usefixtures("library"),
    pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux"),
]

LAZY_ENABLE_PEER_ACCESS: Final = 1
BLOCKING_OFF: Final = 2 | 4  # no timing, for other processes


class Handle(ctypes.Structure):
    _fields_ = (("content", ctypes.c_ubyte * 64),)


@pytest.fixture(params=["cuda:12", "hip:7"])
def client(request: pytest.FixtureRequest, start: Any, tmp_path: Path) -> Any:
    return start(request.param, folder=str(tmp_path))


def exported(client: Any, address: int) -> Handle:
    handle = Handle()
    client.ok("IpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(address))
    return handle


def test_a_block_has_one_handle_wherever_one_points_into_it(client: Any) -> None:
    block, other = client.make("Malloc", 100), client.make("Malloc", 100)
    assert bytes(exported(client, block)) == bytes(exported(client, block + 99))
    assert bytes(exported(client, block)) != bytes(exported(client, other))
    assert len(client.seen(Seen.EXPORTED)) == 2


def test_memory_of_cuda_malloc_alone_can_be_exported(client: Any) -> None:
    freed, handle, local = client.make("Malloc", 100), Handle(), ctypes.create_string_buffer(100)
    client.ok("Free", ctypes.c_void_p(freed))
    addresses = {
        "pinned": client.make("HostAlloc", ctypes.c_size_t(100), 0),
        "managed": client.make("MallocManaged", ctypes.c_size_t(100), 1),
        "stream-ordered": client.make("MallocAsync", ctypes.c_size_t(100), None),
        "freed": freed,
        "the host's own": ctypes.addressof(local),
        "none": 0,
    }
    refused = {
        what: client.call("IpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(address))
        for what, address in addresses.items()
    }
    assert refused == dict.fromkeys(addresses, 1)


def test_who_exports_does_not_open_and_a_handle_of_nobody_is_refused(client: Any) -> None:
    handle, opened = exported(client, client.make("Malloc", 100)), ctypes.c_void_p()
    assert client.call("IpcOpenMemHandle", ctypes.byref(opened), handle, LAZY_ENABLE_PEER_ACCESS) == 201
    assert client.call("IpcOpenMemHandle", ctypes.byref(opened), handle, 0) == 1
    assert client.call("IpcOpenMemHandle", ctypes.byref(opened), Handle(), LAZY_ENABLE_PEER_ACCESS) == 400
    assert client.call("IpcCloseMemHandle", ctypes.c_void_p(client.make("Malloc", 100))) == 1
    assert [record.thing for record in client.seen(Seen.FREED_FOREIGN)] == [Thing.IMPORTED]


def test_an_event_needs_the_flag_for_other_processes(client: Any) -> None:
    handle, opened = Handle(), ctypes.c_void_p()
    ctypes.memset(ctypes.byref(handle), 1, ctypes.sizeof(handle))
    assert client.call("IpcGetEventHandle", ctypes.byref(handle), client.make("EventCreate")) == 400
    assert bytes(handle) == bytes(ctypes.sizeof(handle))
    client.ok("IpcGetEventHandle", ctypes.byref(handle), client.make("EventCreateWithFlags", BLOCKING_OFF))
    assert client.call("IpcOpenEventHandle", ctypes.byref(opened), handle) == 201
    assert client.call("IpcOpenEventHandle", ctypes.byref(opened), Handle()) == 400


def test_a_machine_without_a_folder_has_nobody_to_share_with(start: Any, capfd: pytest.CaptureFixture[str]) -> None:
    client = start("cuda:12")
    assert client.call("IpcGetMemHandle", ctypes.byref(Handle()), ctypes.c_void_p(client.make("Malloc", 8))) == 801
    assert 'cudaIpcGetMemHandle is not simulated; run all processes under one "quiesce exec"' in capfd.readouterr().err


# -- two processes -----------------------------------------------------------------------------------------------------

PRELUDE: Final = """
    return run();
}
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
typedef struct { char bytes[64]; } shared;
int cudaIpcGetMemHandle(shared *, void *), cudaIpcOpenMemHandle(void **, shared, unsigned);
int cudaIpcCloseMemHandle(void *), cudaIpcGetEventHandle(shared *, handle), cudaIpcOpenEventHandle(handle *, shared);
int cudaEventCreateWithFlags(handle *, unsigned), cudaMemcpy(void *, const void *, size_t, int), cudaEventQuery(handle);
int to_importer[2], to_exporter[2], is_importer;
#define OK(call) do { int code = call; if (code) fprintf(stderr, "%s: %d\\n", #call, code), _exit(9); } while (0)
void say(const void *what, size_t bytes) { write(is_importer ? to_exporter[1] : to_importer[1], what, bytes); }
void hear(void *what, size_t bytes) {
    if (read(is_importer ? to_importer[0] : to_exporter[0], what, bytes) < 1) _exit(8); }
void go(void) { say("", 1); }
void wait_for(void) { char c; hear(&c, 1); }
static char text[1 << 22];
void *block(size_t size) { void *made; shared s; OK(cudaMalloc(&made, size)); OK(cudaIpcGetMemHandle(&s, made));
    say(&s, sizeof s); return made; }
void *opened(void) { void *made; shared s; hear(&s, sizeof s); OK(cudaIpcOpenMemHandle(&made, s, 1)); return made; }
handle event(void) { handle made; shared s; OK(cudaEventCreateWithFlags(&made, 6)); OK(cudaIpcGetEventHandle(&s, made));
    say(&s, sizeof s); return made; }
handle opened_event(void) { handle made; shared s; hear(&s, sizeof s); OK(cudaIpcOpenEventHandle(&made, s));
    return made; }
pid_t child;
void join(void) { int status = 0; if (child && waitpid(child, &status, 0) == child) child = 0; }
int exporter(void), importer(void);
int run(void) {
    pipe(to_importer), pipe(to_exporter);
    child = fork();
    if (!child) is_importer = 1, close(to_importer[1]), close(to_exporter[0]), exit(importer());
    close(to_exporter[1]), close(to_importer[0]);
    int own = exporter(), status = 0;
    if (child) waitpid(child, &status, 0);
    return status ? 7 : own;
}
"""


def judged_processes(folder: Path, exporter: str, importer: str, **settings: Any) -> dict[str, Process]:
    """Run a program of two processes; return what was judged of each, under its part."""
    body = f"{PRELUDE} int exporter(void) {{ {exporter}\n return 0; }} int importer(void) {{ {importer}\n return 0;"
    program = compile_client(folder, body, flags=("-g",))
    machine = MachineSettings(parse_flavour("cuda:12"), **settings)
    with run_program([str(program)], machine, os.environ) as ended:
        assert ended.status == 0
        conditions = JudgeConditions(at_exit=AtExit.ALL)
        named = zip(CLEAN, sorted(ended.ledgers, key=_number), strict=True)
        return {part: judge_process(path, conditions) for part, path in named}


def judged(folder: Path, exporter: str, importer: str, **settings: Any) -> dict[str, tuple[Finding, ...]]:
    """Run such a program; return the findings about each process."""
    processes = judged_processes(folder, exporter, importer, **settings)
    return {part: process.findings for part, process in processes.items()}


def _number(path: Path) -> int:
    return int(path.stem)


def kinds(found: dict[str, tuple[Finding, ...]]) -> dict[str, list[str]]:
    return {part: [finding.kind for finding in findings] for part, findings in found.items()}


CLEAN: Final[dict[str, list[str]]] = {"exporter": [], "importer": []}


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("size", [8, 700, 5000, 3_000_000])
def test_each_sees_what_the_other_writes(size: int, schedule: str, tmp_path: Path) -> None:
    exporter = f"""
        void *other = block({size}), *made = block({size});
        OK(cudaMemset(made, 1, {size})); OK(cudaMemset(other, 9, {size})); OK(cudaDeviceSynchronize());
        go(); wait_for();
        OK(cudaMemcpy(text, made, {size}, 2)); for (int i = 0; i < {size}; i++) if (text[i] != 2) return 1;
        OK(cudaMemcpy(text, other, {size}, 2)); for (int i = 0; i < {size}; i++) if (text[i] != 9) return 2;
        OK(cudaFree(made)); OK(cudaFree(other));"""
    importer = f"""
        void *other = opened(), *made = opened();
        wait_for();
        OK(cudaMemcpy(text, made, {size}, 2)); for (int i = 0; i < {size}; i++) if (text[i] != 1) return 1;
        OK(cudaMemset(made, 2, {size})); OK(cudaDeviceSynchronize());
        OK(cudaIpcCloseMemHandle(made)); OK(cudaIpcCloseMemHandle(other)); go();"""
    assert kinds(judged(tmp_path, exporter, importer, schedule=schedule)) == CLEAN


def test_what_is_cleared_in_a_shared_block_is_zero_for_both(tmp_path: Path) -> None:
    """Private pages would be given back to the system for that, shared ones keep what they hold."""
    exporter = """
        void *made = block(1 << 22); OK(cudaMemset(made, 1, 1 << 22)); OK(cudaMemset(made, 0, 1 << 22));
        OK(cudaDeviceSynchronize()); go(); wait_for(); OK(cudaFree(made));"""
    importer = """
        void *made = opened(); wait_for(); OK(cudaMemcpy(text, made, 1 << 22, 2));
        for (int i = 0; i < 1 << 22; i++) if (text[i]) return 1;
        OK(cudaIpcCloseMemHandle(made)); go();"""
    assert kinds(judged(tmp_path, exporter, importer)) == CLEAN


def test_a_handle_that_is_opened_twice_is_one_block_and_is_closed_twice(tmp_path: Path) -> None:
    exporter = "void *made = block(100); wait_for(); OK(cudaFree(made));"
    importer = """
        void *first, *second; shared s; hear(&s, sizeof s);
        OK(cudaIpcOpenMemHandle(&first, s, 1)); OK(cudaIpcOpenMemHandle(&second, s, 1)); if (first != second) return 1;
        OK(cudaIpcCloseMemHandle(first)); OK(cudaMemset(first, 0, 100)); OK(cudaIpcCloseMemHandle(first)); MORE go();"""
    assert kinds(judged(tmp_path, exporter, importer.replace("MORE", ""))) == CLEAN
    again = importer.replace("MORE", "if (cudaIpcCloseMemHandle(first) != 1) return 2;")
    assert kinds(judged(tmp_path, exporter, again)) == {**CLEAN, "importer": [Kind.DOUBLE_FREE]}


def test_an_import_has_the_bounds_of_its_block_and_its_own_function_closes_it(tmp_path: Path) -> None:
    exporter = "void *made = block(100); wait_for(); OK(cudaFree(made));"
    importer = """
        void *made = opened(); if (cudaMemset(made, 0, 101) != 1 || cudaFree(made) != 1) return 1;
        OK(cudaIpcCloseMemHandle(made)); if (cudaMemset(made, 0, 1) != 1) return 2; go();"""
    expected: list[str] = [Kind.OUT_OF_BOUNDS, Kind.INVALID_FREE, Kind.USE_AFTER_FREE]
    assert kinds(judged(tmp_path, exporter, importer)) == {**CLEAN, "importer": expected}


def test_an_import_that_is_never_closed_is_a_leak(tmp_path: Path) -> None:
    exporter = "void *made = block(100); join(); OK(cudaFree(made));"
    importer = "void *made = opened(); OK(cudaMemset(made, 0, 100));"
    assert kinds(judged(tmp_path, exporter, f"{importer} OK(cudaIpcCloseMemHandle(made));")) == CLEAN
    found = judged(tmp_path, exporter, importer)
    assert kinds(found) == {**CLEAN, "importer": [Kind.MEMORY_LEAK]}
    assert found["importer"][0].observed.startswith("100 bytes in 1 block of imported memory from cudaIpcOpenMemHandle")


def test_a_free_while_another_process_has_the_memory_open_is_found(tmp_path: Path) -> None:
    """CUDA's document calls it undefined behavior, whether or not the other process uses the memory afterwards."""
    exporter = "void *made = block(100); wait_for(); OK(cudaFree(made)); go();"
    open_then = "void *made = opened(); go(); wait_for(); OK(cudaIpcCloseMemHandle(made));"
    closed_before = "void *made = opened(); OK(cudaIpcCloseMemHandle(made)); go(); wait_for();"
    assert kinds(judged(tmp_path, exporter, closed_before)) == CLEAN
    found = judged(tmp_path, exporter, open_then)
    assert kinds(found) == {**CLEAN, "exporter": [Kind.USE_AFTER_FREE]}
    assert found["exporter"][0].observed.endswith("which another process has open")


def test_a_process_that_was_killed_has_nothing_open(tmp_path: Path) -> None:
    exporter = "void *made = block(100); wait_for(); kill(child, SIGKILL); join(); OK(cudaFree(made));"
    importer = "void *made = opened(); go(); pause(); OK(cudaIpcCloseMemHandle(made));"
    assert kinds(judged(tmp_path, exporter, importer)) == CLEAN


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_use_after_the_exporter_freed_is_found(schedule: str, tmp_path: Path) -> None:
    exporter = "void *made = block(100); wait_for(); OK(cudaFree(made)); go();"
    importer = """
        void *made = opened(); go(); wait_for(); if (cudaMemset(made, 0, 100) != 1) return 1;
        OK(cudaIpcCloseMemHandle(made));"""
    found = judged(tmp_path, exporter, importer, schedule=schedule)
    assert kinds(found) == {part: [Kind.USE_AFTER_FREE] for part in CLEAN}


def test_a_use_after_the_exporter_ended_is_found(tmp_path: Path) -> None:
    exporter = "block(100); wait_for();"
    importer = """
        void *made = opened(); pid_t other = getppid(); go(); while (getppid() == other) usleep(1000);
        if (cudaMemset(made, 0, 100) != 1) return 1; OK(cudaIpcCloseMemHandle(made));"""
    found = judged(tmp_path, f"{exporter} exit(0);", importer)
    assert kinds(found)["importer"] == [Kind.USE_AFTER_FREE]


def test_the_finding_about_a_use_says_where_the_exporter_freed(tmp_path: Path) -> None:
    exporter = "void *made = block(100); wait_for(); OK(cudaFree(made)); go();"
    importer = """
        void *made = opened(); go(); wait_for(); if (cudaMemset(made, 0, 100) != 1) return 1;
        OK(cudaIpcCloseMemHandle(made));"""
    (finding,) = judged(tmp_path, exporter, importer, options={"stacks": 1})["importer"]
    freed = next(site for site in finding.call_sites if site.role.startswith("freed"))
    assert (freed.role, freed.call) == ("freed in process 1 by", "cudaFree")
    assert any(frame.function == "exporter" for frame in freed.frames)


# -- races between processes -------------------------------------------------------------------------------------------

WRITES: Final = (
    "void *made = block(100); SETUP OK(cudaMemset(made, 1, 100)); AFTER go(); wait_for(); OK(cudaFree(made));"
)
READS: Final = """
    void *made = opened(); SETUP wait_for(); BEFORE OK(cudaMemcpy(text, made, 100, 2));
    OK(cudaIpcCloseMemHandle(made)); go();"""


def parts(program: str, **said: str) -> str:
    for name in ("SETUP", "BEFORE", "AFTER"):
        program = program.replace(name, said.get(name.lower(), ""))
    return program


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_use_that_the_other_host_could_not_know_to_be_complete_races(schedule: str, tmp_path: Path) -> None:
    """``cudaMemset`` returns before it is done: that its process said so proves nothing."""
    found = judged(tmp_path, parts(WRITES), parts(READS), schedule=schedule)
    assert kinds(found) == {**CLEAN, "importer": [Kind.RACE]}
    (race,) = found["importer"]
    assert race.expected.startswith("cudaMemset (call ")
    assert " in process 1 before cudaMemcpy (call " in race.expected
    assert race.expected.endswith(" on the default stream in process 2")
    assert race.observed.startswith("nothing orders the two, and both use 100 bytes of memory that the processes share")


@pytest.mark.parametrize(
    "waits",
    ["OK(cudaDeviceSynchronize());", "OK(cudaStreamSynchronize(0));", "OK(cudaMemcpy(text, made, 1, 2));"],
)
def test_a_host_that_waited_can_have_told_the_other(waits: str, tmp_path: Path) -> None:
    assert kinds(judged(tmp_path, parts(WRITES, after=waits), parts(READS))) == CLEAN


def test_the_importer_races_with_the_exporter_as_well(tmp_path: Path) -> None:
    exporter = (
        "void *made = block(100); wait_for(); OK(cudaMemcpy(text, made, 100, 2)); go(); join(); OK(cudaFree(made));"
    )
    importer = (
        "void *made = opened(); OK(cudaMemset(made, 1, 100)); AFTER go(); wait_for(); OK(cudaIpcCloseMemHandle(made));"
    )
    assert kinds(judged(tmp_path, exporter, parts(importer))) == {**CLEAN, "exporter": [Kind.RACE]}
    waited = parts(importer, after="OK(cudaDeviceSynchronize());")
    assert kinds(judged(tmp_path, exporter, waited)) == CLEAN


def test_two_that_read_need_no_order_and_neither_do_two_blocks_in_one_page(tmp_path: Path) -> None:
    exporter = """
        void *other = block(100), *made = block(100); OK(cudaMemset(made, 1, 100)); OK(cudaDeviceSynchronize()); go();
        OK(cudaMemsetAsync(other, 1, 100, 0)); OK(cudaMemcpy(text, made, 100, 2)); wait_for(); join();
        OK(cudaFree(made)); OK(cudaFree(other));"""
    importer = """
        void *other = opened(), *made = opened(); wait_for(); OK(cudaMemcpy(text, made, 100, 2)); go();
        OK(cudaIpcCloseMemHandle(made)); OK(cudaIpcCloseMemHandle(other));"""
    assert kinds(judged(tmp_path, exporter, importer)) == CLEAN


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_an_event_of_both_orders_work_that_no_host_waits_for(schedule: str, tmp_path: Path) -> None:
    writes = parts(
        WRITES.replace("OK(cudaFree", "join(); OK(cudaEventDestroy(e)); OK(cudaFree"),
        setup="handle e = event();",
        after="RECORD",
    )
    reads = parts(
        READS.replace("go();", "go(); OK(cudaEventDestroy(e));"),
        setup="handle e = opened_event();",
        before="OK(cudaStreamWaitEvent(0, e, 0));",
    )
    recorded = judged(tmp_path, writes.replace("RECORD", "OK(cudaEventRecord(e, 0));"), reads, schedule=schedule)
    assert kinds(recorded) == CLEAN
    never = judged(tmp_path, writes.replace("RECORD", ""), reads, schedule=schedule)
    assert kinds(never) == {**CLEAN, "importer": [Kind.RACE]}
    too_early = writes.replace("RECORD", "").replace("OK(cudaMemset", "OK(cudaEventRecord(e, 0)); OK(cudaMemset")
    assert kinds(judged(tmp_path, too_early, reads, schedule=schedule)) == {**CLEAN, "importer": [Kind.RACE]}


def test_an_event_that_the_importer_records_orders_the_exporter(tmp_path: Path) -> None:
    exporter = """
        void *made = block(100); handle e = event(); wait_for(); WAIT OK(cudaMemcpy(text, made, 100, 2)); go(); join();
        OK(cudaEventDestroy(e)); OK(cudaFree(made));"""
    importer = """
        void *made = opened(); handle e = opened_event(); OK(cudaMemset(made, 1, 100)); OK(cudaEventRecord(e, 0)); go();
        wait_for(); OK(cudaEventDestroy(e)); OK(cudaIpcCloseMemHandle(made));"""
    for wait in ("OK(cudaStreamWaitEvent(0, e, 0));", "OK(cudaEventSynchronize(e));", "OK(cudaEventQuery(e));"):
        assert kinds(judged(tmp_path, exporter.replace("WAIT", wait), importer)) == CLEAN
    assert kinds(judged(tmp_path, exporter.replace("WAIT", ""), importer)) == {**CLEAN, "exporter": [Kind.RACE]}


def test_an_imported_event_is_not_used_after_its_exporter_destroyed_it(tmp_path: Path) -> None:
    exporter = "handle e = event(); wait_for(); BEFORE go(); wait_for(); AFTER"
    importer = "handle e = opened_event(); go(); wait_for(); OK(cudaEventRecord(e, 0)); go(); OK(cudaEventDestroy(e));"
    assert kinds(judged(tmp_path, parts(exporter, after="OK(cudaEventDestroy(e));"), importer)) == CLEAN
    found = judged(tmp_path, parts(exporter, before="OK(cudaEventDestroy(e));"), importer)
    assert kinds(found) == {**CLEAN, "importer": [Kind.DEAD_HANDLE]}


def test_races_are_not_judged_where_a_record_is_not_complete(tmp_path: Path) -> None:
    """What was overwritten may have put uses in order: the run has no verdict, and says why."""
    waited = parts(WRITES, after="OK(cudaDeviceSynchronize());")
    many = parts(READS, setup="for (int i = 0; i < 99; i++) cudaStreamQuery(0);")
    options = {"ring": 64, "saved": 0}
    processes = judged_processes(tmp_path, waited, many, options=options)
    reason = "races between processes were not judged: the record of one that shares memory is not complete"
    assert [reason in each.unchecked for each in processes.values()] == [True, True]
    whole = judged_processes(tmp_path, waited, many)
    assert [each.unchecked for each in whole.values()] == ["", ""]
    assert [NOT_CHECKED in each.not_checked for each in whole.values()] == [True, True]


def test_the_driver_opens_what_the_runtime_exports_and_a_reset_closes_it(tmp_path: Path) -> None:
    exporter = """
        void *made = block(100); OK(cudaMemset(made, 5, 100)); OK(cudaDeviceSynchronize()); go(); join();
        OK(cudaFree(made));"""
    importer = """
        void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *made; shared s; hear(&s, sizeof s); wait_for();
        #define CU(name) ((int (*)())dlsym(driver, "cu" name))
        OK(CU("Init")(0));
        if (CU("IpcOpenMemHandle_v2")(&made, s, 1) != 201) return 1;
        OK(CU("DevicePrimaryCtxRetain")(&context, 0)); OK(CU("CtxSetCurrent")(context));
        OK(CU("IpcOpenMemHandle_v2")(&made, s, 1)); OK(CU("MemcpyDtoH_v2")(text, made, (size_t)100));
        if (text[99] != 5) return 2;
        OK(CU(END));"""
    for end in ('"IpcCloseMemHandle")(made', '"DevicePrimaryCtxReset_v2")(0'):
        assert kinds(judged(tmp_path, exporter, importer.replace("END)", f"{end})"))) == CLEAN


def test_what_another_device_opens_it_can_use(tmp_path: Path) -> None:
    """``cudaIpcOpenMemHandle`` enables access to the exporter's device; an event is of the device that opens it."""
    exporter = """
        void *made = block(100); handle e = event(); OK(cudaMemset(made, 5, 100)); OK(cudaDeviceSynchronize());
        go(); join(); OK(cudaEventDestroy(e)); OK(cudaFree(made));"""
    importer = """
        OK(cudaSetDevice(1)); void *made = opened(); handle e = opened_event(), s; wait_for();
        if (cudaDeviceEnablePeerAccess(0, 0) != 704) return 1;
        OK(cudaStreamCreate(&s)); OK(cudaMemsetAsync(made, 6, 100, s)); OK(cudaEventRecord(e, s));
        OK(cudaStreamSynchronize(s)); OK(cudaEventDestroy(e)); OK(cudaStreamDestroy(s));
        OK(cudaIpcCloseMemHandle(made)); go();"""
    assert kinds(judged(tmp_path, exporter, importer, options={"devices": 2})) == CLEAN


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((0, 4, Touch.STRONG_WRITE), (0, 4, Touch.STRONG_READ), True),
        ((0, 4, Touch.STRONG_READ), (2, 8, Touch.ATOMIC), True),
        ((0, 4, Touch.STRONG_READ), (0, 4, Touch.STRONG_READ), False),
        ((0, 4, Touch.ATOMIC), (4, 8, Touch.STRONG_READ), False),
    ],
)
def test_kernels_of_two_processes_may_wait_for_each_other(
    one: tuple[int, int, Touch], other: tuple[int, int, Touch], expected: bool
) -> None:
    assert may_signal({1: {one}, 2: {other}}) is expected
    assert not may_signal({1: {one, other}, 2: set()}), "they are of one process"
