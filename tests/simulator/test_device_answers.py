"""The simulated runtime answers the questions of ``device_answers.cu`` as an NVIDIA H200 with CUDA 13.0 did.

Where it does not, the question is listed with the number of answers that differ and a reason: a new difference is an
error, and so is one that is gone.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.device_answers import FACTS, Answers, written
from tests.simulator.test_nvcc import build, run
from tests.simulator.test_nvcc import pytestmark as needs_nvcc

pytestmark = needs_nvcc

HERE: Final = Path(__file__).parent
RECORDED: Final[Answers] = json.loads((HERE / "device_answers.json").read_text(encoding="utf-8"))
QUESTIONS: Final = sorted(RECORDED.keys() - {FACTS})

_GOES_ON: Final = "a kernel that goes wrong is reported, and the program goes on"
_NO_GRAPHS: Final = "graphs can't be built by hand, as cudaGraphCreate does"
_UNDEFINED: Final = "what a destroyed handle leads to is undefined: here an error, there a crash"
KNOWN: Final[dict[str, tuple[int, str]]] = {
    "allocate": (3, "sizes of 0 and unknown flags of pinned and managed memory"),
    "capture_global": (4, _NO_GRAPHS),
    "capture_global_elsewhere": (4, _NO_GRAPHS),
    "capture_of_a_thread": (4, _NO_GRAPHS),
    "capture_of_a_thread_elsewhere": (4, _NO_GRAPHS),
    "capture_relaxed": (4, _NO_GRAPHS),
    "capture_relaxed_elsewhere": (4, _NO_GRAPHS),
    "captured_event": (4, f"{_NO_GRAPHS}; work is done at once"),
    "context_broken": (6, "work is done at once, and an error makes the whole device unusable"),
    "context_destroyed_set_current": (2, "a context that was destroyed can't be made current"),
    "devices": (4, "error numbers of unknown limits, peers and handles of other processes"),
    "driver_launch": (1, "'.reqntid' is taken for '.maxntid'"),
    "event_destroyed_destroy": (1, _UNDEFINED),
    "event_destroyed_record": (1, _UNDEFINED),
    "fault_atomic_misaligned": (11, _GOES_ON),
    "fault_far": (11, _GOES_ON),
    "fault_host_memory": (11, _GOES_ON),
    "fault_misaligned": (11, _GOES_ON),
    "fault_null": (11, _GOES_ON),
    "fault_shared": (11, _GOES_ON),
    "fork_child": (9, "a child of fork() that has no device can't take its last error away"),
    "fork_child_of_an_idle_parent": (2, "a child of fork() that has no device can't take its last error away"),
    "free_asynchronous": (2, "memory of cudaMalloc() that cudaFreeAsync() freed is free; there it crashes in the end"),
    "graph_handles": (11, _NO_GRAPHS),
    "graph_memory_kept": (1, "memory of a graph that was never launched can be freed"),
    "graph_memory_nodes": (16, _NO_GRAPHS),
    "launch_clusters": (2, "clusters of blocks are not executed, and their sizes not checked"),
    "launch_function": (4, "a function that nobody registered is launched, and computes nothing"),
    "launch_shared_memory": (3, "sizes beyond 32 bits are refused; there they are cut"),
    "modules": (2, "an image that can't be read is believed"),
    "pools": (1, "what a pool has in use is rounded up"),
    "register_host": (5, "unknown flags, and error numbers of what was not registered"),
    "stream_destroyed_destroy": (1, _UNDEFINED),
    "stream_destroyed_launch": (1, _UNDEFINED),
    "stream_destroyed_synchronize": (1, _UNDEFINED),
    "symbols": (1, "the error number of a wrong direction"),
    "virtual_memory": (3, "a part of a handle's memory, and unmapping of what is not mapped"),
}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the simulated runtime answers."""
    folder = tmp_path_factory.mktemp("answers")
    shutil.copy(HERE / "device_answers.cuh", folder)
    names = ("device_answers.cu", "device_answers_calls.cu", "device_answers_captures.cu")
    program = build(folder, {name: (HERE / name).read_text(encoding="utf-8") for name in names}, "-std=c++17")
    path = folder / "answers.json"
    done = run(sys.executable, HERE / "device_answers.py", program, path)
    assert path.exists(), done.stderr
    answers: Answers = json.loads(path.read_text(encoding="utf-8"))
    return answers


def differences(one: list[list[object]], other: list[list[object]]) -> list[object]:
    """Return the answers that differ, those that one side has alone included."""
    longest = max(len(one), len(other))
    filled = ([*side, *[None] * (longest - len(side))] for side in (one, other))
    return [pair for pair in zip(*filled, strict=True) if pair[0] != pair[1]]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_simulated_runtime_answers_as_the_device(question: str, simulated: Answers) -> None:
    different = differences(RECORDED[question], simulated[question])
    expected, reason = KNOWN.get(question, (0, ""))
    assert len(different) == expected, (reason, different)


def test_every_known_difference_is_about_a_question() -> None:
    assert sorted(KNOWN.keys() - set(QUESTIONS)) == []
    assert all(reason for _, reason in KNOWN.values())


def test_the_file_is_as_the_program_writes_it() -> None:
    assert written(RECORDED) == (HERE / "device_answers.json").read_text(encoding="utf-8")
