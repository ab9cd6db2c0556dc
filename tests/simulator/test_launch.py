"""Programs on the simulated runtime: they find it, and leave a readable ledger however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import ConfigurationError
from quiesce.simulator.runtime.flavours import KNOWN, parse_flavour
from quiesce.simulator.runtime.launch import SETTINGS_VARIABLE, MachineSettings, run_program
from quiesce.simulator.runtime.ledger import Ledger, Reach, Seen, Thing, open_ledger

pytestmark = pytest.mark.usefixtures("library")

SETTINGS = MachineSettings(parse_flavour("cuda:12"))


def run(
    program: Path, *words: str, settings: MachineSettings = SETTINGS, environment: Mapping[str, str] = os.environ
) -> tuple[int, list[tuple[dict[Thing, int], list[Seen], bool]]]:
    """Return the status, and for each ledger what is live, what was seen and whether the process exited by itself."""
    with run_program([str(program), *words], settings, environment) as ended:
        found = []
        for path in ended.ledgers:
            with open_ledger(path) as ledger:
                found.append(_summary(ledger))
        return ended.status, found


def _summary(ledger: Ledger) -> tuple[dict[Thing, int], list[Seen], bool]:
    counts = {thing: ledger.counted(thing)[0] for thing in Thing if thing and ledger.counted(thing)[0]}
    return counts, [record.seen for record in ledger.records()], ledger.exited


def test_a_program_finds_the_runtime_and_keeps_its_status(tmp_path: Path) -> None:
    program = compile_client(tmp_path, "void *p; cudaMalloc(&p, 100); cudaFree(p); return 3;")
    assert run(program) == (3, [({}, [Seen.ALLOCATED, Seen.FREED], True)])


def test_a_program_that_calls_nothing_leaves_no_ledger(tmp_path: Path) -> None:
    assert run(compile_client(tmp_path, "return 0;")) == (0, [])


def test_a_neighbour_fails_by_name_and_the_program_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = 'printf("%d %d\\n", cublasSgemm_v2(), cudaMallocMipmappedArray()); return 0;'
    program = compile_client(tmp_path, body, libraries=("libcublas.so.12",))
    status, ledgers = run(program)
    written = capfd.readouterr()
    assert written.out == "15 801\n"
    assert "cublasSgemm_v2" in written.err
    assert "cudaMallocMipmappedArray" in written.err
    assert (status, ledgers) == (0, [({}, [Seen.NOT_SIMULATED] * 2, True)])


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("kill(getpid(), 9);", -signal.SIGKILL),
        ("abort();", -signal.SIGABRT),
        ("*(volatile int *)0 = 1;", -signal.SIGSEGV),
        ("_exit(5);", 5),
    ],
)
def test_a_program_that_ends_badly_leaves_a_readable_ledger(tmp_path: Path, ending: str, status: int) -> None:
    body = f"int kill(int, int); void *p; cudaMalloc(&p, 100); {ending} return 0;"
    program = compile_client(tmp_path, body)
    assert run(program) == (status, [({Thing.DEVICE: 1}, [Seen.ALLOCATED], False)])


def test_a_child_of_fork_has_no_device_and_the_parents_ledger_stays_its_own(tmp_path: Path) -> None:
    body = """
    int fork(void), wait(int *), status = 0;
    void *p, *q;
    cudaMalloc(&p, 100);
    if (fork() == 0) exit(cudaMalloc(&q, 100));
    wait(&status);
    cudaFree(p);
    return status >> 8;"""
    status, ledgers = run(compile_client(tmp_path, body))
    assert status == 3, "cudaErrorInitializationError"
    assert ledgers == [({}, [Seen.ALLOCATED, Seen.FREED], True)]


def test_a_child_that_begins_itself_has_a_ledger_of_its_own(tmp_path: Path) -> None:
    body = """
    int fork(void), wait(int *);
    void *p;
    int child = fork() == 0;
    cudaMalloc(&p, child ? 200 : 100);
    if (!child) wait(0);
    return 0;"""
    status, ledgers = run(compile_client(tmp_path, body))
    assert (status, len(ledgers)) == (0, 2)


def test_a_process_that_is_replaced_leaves_a_ledger_for_each_program(tmp_path: Path) -> None:
    body = """
    void *p;
    cudaMalloc(&p, 100);
    if (count == 1) { char *again[] = {words[0], "again", 0}; execv(words[0], again); }
    return 0;"""
    status, ledgers = run(compile_client(tmp_path, body))
    assert status == 0
    assert [exited for _, _, exited in ledgers] == [False, True]


def test_what_a_client_can_still_reach_is_told_apart_from_what_is_lost(tmp_path: Path) -> None:
    body = """
    void *p;
    for (int i = 0; i < 5; i++) cudaMalloc(&p, 100 + i);
    cudaMalloc(&kept, 64);
    handle *cells = malloc(sizeof(handle));
    cudaStreamCreate(cells);
    kept = memcpy(malloc(16), (void *[]){kept, cells}, 16);
    handle lost;
    cudaEventCreate(&lost);
    memset(&lost, 0, sizeof lost);
    __asm__ volatile("" : : "r"(&lost) : "memory");
    return 0;"""
    program = compile_client(tmp_path, body)
    with run_program([str(program)], SETTINGS, os.environ) as ended, open_ledger(ended.ledgers[0]) as ledger:
        held = {(thing.thing, thing.size_bytes): thing.reach is Reach.HELD for thing in ledger.live()}
    assert held[Thing.DEVICE, 64]
    assert held[Thing.STREAM, 0]
    assert not held[Thing.EVENT, 0]
    assert not any(held[Thing.DEVICE, size] for size in range(100, 104))


def test_a_python_program_holds_what_its_integers_name(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import ctypes\n"
        "runtime = ctypes.CDLL('libcudart.so.12')\n"
        "def allocate(size):\n"
        "    made = ctypes.c_void_p()\n"
        "    assert runtime.cudaMalloc(ctypes.byref(made), size) == 0\n"
        "    return made.value\n"
        "kept = allocate(100)\n"
        "for _ in range(3): allocate(200)\n",
        encoding="utf-8",
    )
    with run_program([sys.executable, str(script)], SETTINGS, os.environ) as ended:
        assert ended.status == 0
        with open_ledger(ended.ledgers[0]) as ledger:
            reach = [(thing.size_bytes, thing.reach) for thing in ledger.live()]
    assert reach == [(100, Reach.HELD), *[(200, Reach.LOST)] * 3]


@pytest.mark.parametrize("simulated", KNOWN, ids=str)
def test_every_flavour_answers_under_its_names(simulated: object, tmp_path: Path) -> None:
    name = parse_flavour(str(simulated)).libraries[0]
    prefix = "hip" if "hip" in name else "cuda"
    text = f"import ctypes; assert ctypes.CDLL('{name}').{prefix}RuntimeGetVersion(ctypes.byref(ctypes.c_int())) == 0"
    settings = MachineSettings(parse_flavour(str(simulated)))
    with run_program([sys.executable, "-c", text], settings, os.environ) as ended:
        assert ended.status == 0
        with open_ledger(ended.ledgers[0]) as ledger:
            assert (ledger.flavour.value, ledger.version) == (
                settings.simulated.flavour.value,
                settings.simulated.version,
            )


@pytest.mark.parametrize("text", ["hip", "hip:4", "cuda:12.4", "rocm:7", ""])
def test_a_flavour_that_is_not_simulated_is_said(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"hip:7"):
        parse_flavour(text)


def test_a_program_that_is_not_there_is_said() -> None:
    with (
        pytest.raises(ConfigurationError, match="no program 'no-such-program'"),
        run_program(["no-such-program"], SETTINGS, os.environ),
    ):
        pass


def test_nothing_of_a_run_stays(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    program = compile_client(tmp_path, "void *p; return cudaMalloc(&p, 100);")
    before = sorted(path.name for path in tmp_path.iterdir())
    text = (
        "import sys; from quiesce.simulator.runtime.launch import *\n"
        "from quiesce.simulator.runtime.flavours import *; import os\n"
        "with run_program([sys.argv[1]], MachineSettings(parse_flavour('cuda:12')), os.environ) as ended: pass\n"
    )
    subprocess.run([sys.executable, "-c", text, str(program)], env=environment, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_settings_reach_the_library_as_it_reads_them() -> None:
    settings = MachineSettings(parse_flavour("hip:7"), "lazy", 3, {"capacity": 5, "fail": "device:1"})
    assert settings.text() == "flavour=hip;version=7;schedule=lazy;seed=3;capacity=5;fail=device:1"
    assert SETTINGS_VARIABLE == "QUIESCE_SIMULATOR"
    with pytest.raises(ConfigurationError, match="';'"):
        MachineSettings(parse_flavour("hip:7"), options={"fail": "a;b"}).text()
