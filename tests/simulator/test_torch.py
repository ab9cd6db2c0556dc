"""Stock PyTorch on the simulated runtime: its allocators, streams, events, memory history and graphs.

QUIESCE_TORCH names the flavour that the wheel is built for, where torch is installed without the libraries of the
vendor; without it this is skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from .torch_programs import ALLOCATOR_OPTIONS, GUILTY, INNOCENT, OF_TENSORS, PREPARE

pytestmark = pytest.mark.skipif(not os.environ.get("QUIESCE_TORCH"), reason="it needs PyTorch: tox -e torch")

IMPORT: Final = "import torch\nassert torch.cuda.device_count() == 1\n"
ALLOCATORS: Final = IMPORT + (
    "x = torch.empty(1000, device='cuda')\n"
    "assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == (4096, 2 << 20)\n"
    "y = torch.arange(1000).pin_memory()\n"
    "assert y.is_pinned()\n"
    "z = y.to('cuda', non_blocking=True)\n"
    "torch.cuda.synchronize()\n"
    "assert (z.cpu() == y).all()\n"
    "del x, z\n"
    "torch.cuda.empty_cache()\n"
    "assert torch.cuda.memory_reserved() == 0\n"
)
ORDER: Final = IMPORT + (
    "stream, event = torch.cuda.Stream(), torch.cuda.Event()\n"
    "with torch.cuda.stream(stream): block = torch.empty(1 << 20, device='cuda')\n"
    "block.record_stream(torch.cuda.current_stream())\n"
    "event.record(stream)\n"
    "event.synchronize()\n"
    "assert event.query() and stream.query()\n"
)
HISTORY: Final = IMPORT + (
    "torch.cuda.memory._record_memory_history()\n"
    "x = torch.empty(1 << 20, device='cuda')\n"
    "del x\n"
    "(trace,) = torch.cuda.memory._snapshot()['device_traces']\n"
    "assert [entry['action'] for entry in trace] == ['segment_alloc', 'alloc', 'free_requested', 'free_completed']\n"
)
GRAPH: Final = IMPORT + (
    "source, target = torch.empty(100, device='cuda'), torch.empty(100, device='cuda')\n"
    "graph = torch.cuda.CUDAGraph()\n"
    "with torch.cuda.graph(graph): target.copy_(source)\n"
    "source.copy_(torch.ones(100))\n"
    "graph.replay()\n"
    "torch.cuda.synchronize()\n"
    "assert (target.cpu() == 1).all()\n"
)
OUT_OF_MEMORY: Final = IMPORT + (
    "kept = torch.empty(300 << 20, dtype=torch.uint8, device='cuda')\n"
    "try: torch.empty(1 << 30, dtype=torch.uint8, device='cuda')\n"
    "except torch.OutOfMemoryError as error: print(error)\n"
    "else: raise SystemExit('it was allocated')\n"
)
COUNTED: Final = (
    "import os, torch\n"
    "assert torch.cuda.is_available() and torch.cuda._device_count_nvml() == 1\n"
    "child = os.fork()\n"
    "if not child:\n"
    "    torch.empty(1000, device='cuda')\n"
    "    os._exit(torch.cuda.memory_reserved() != 2 << 20)\n"
    "assert os.waitpid(child, 0)[1] == 0\n"
)
"""The parent asks NVML alone: had it called the runtime, its child could not use a device."""


def run(text: str, *options: str, allocator: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return run_words(["-c", text], *options, allocator=allocator, **variables)


def run_words(
    words: list[str], *options: str, allocator: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", os.environ["QUIESCE_TORCH"], *options]
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": allocator, **variables}
    command += ["--", sys.executable, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
@pytest.mark.parametrize("text", [ALLOCATORS, ORDER, HISTORY, GRAPH], ids=["allocators", "order", "history", "graph"])
def test_memory_management_works(text: str, schedule: str) -> None:
    done = run(text, "--schedule", schedule)
    assert done.returncode == 0, done.stdout + done.stderr


SEGMENTS: Final = "expandable_segments:True"  # blocks of virtual memory, to which memory is mapped as they grow


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
@pytest.mark.parametrize("text", [ALLOCATORS, ORDER, GRAPH], ids=["allocators", "order", "graph"])
def test_memory_management_works_in_expandable_segments(text: str, schedule: str) -> None:
    done = run(text, "--schedule", schedule, allocator=SEGMENTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not simulated" not in done.stderr


SIMPLE: Final = ""
PROGRAMS: Final = ("--schedule", "lazy", "--capacity", "1GiB")


@pytest.mark.parametrize("allocator", [SIMPLE, SEGMENTS], ids=["segments", "expandable"])
def test_out_of_memory_names_the_capacity_and_what_the_process_uses(allocator: str) -> None:
    done = run(OUT_OF_MEMORY, "--capacity", "512MiB", allocator=allocator)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "total capacity of 512.00 MiB" in done.stdout
    assert "this process has 300.00 MiB memory in use" in done.stdout.replace("320.00", "300.00"), "NVML says so"


def test_devices_are_counted_without_a_context() -> None:
    done = run(COUNTED, PYTORCH_NVML_BASED_CUDA_CHECK="1")
    assert "Traceback" not in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(INNOCENT))
def test_a_correct_program_accuses_nobody(name: str) -> None:
    done = run(IMPORT + INNOCENT[name], *PROGRAMS, allocator=ALLOCATOR_OPTIONS.get(name, SIMPLE))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(INNOCENT.keys() - ALLOCATOR_OPTIONS.keys()))
def test_a_correct_program_accuses_nobody_in_expandable_segments(name: str) -> None:
    done = run(IMPORT + INNOCENT[name], *PROGRAMS, allocator=SEGMENTS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(GUILTY))
def test_a_wrong_program_breaks_its_rule(name: str) -> None:
    rule, text = GUILTY[name]
    done = run(IMPORT + PREPARE + text, *PROGRAMS)
    assert set(re.findall(r"rule: +(\w+)", done.stdout)) == {rule}, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(OF_TENSORS))
def test_a_wrong_program_breaks_its_rule_in_expandable_segments(name: str) -> None:
    rule, text = GUILTY[name]
    done = run(IMPORT + PREPARE + text, *PROGRAMS, allocator=SEGMENTS)
    assert set(re.findall(r"rule: +(\w+)", done.stdout)) == {rule}, done.stdout + done.stderr


SHARED: Final = """
import torch
import torch.multiprocessing

def consume(tensors, done):
    tensor = tensors.get()
    assert (tensor.cpu() == 1).all()
    tensor.copy_(torch.full((1000,), 2.0))
    torch.cuda.synchronize()
    del tensor
    done.put(True)

if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    tensors, done = context.Queue(), context.Queue()
    child = context.Process(target=consume, args=(tensors, done))
    child.start()
    tensor = torch.empty(1000, device="cuda")
    tensor.copy_(torch.full((1000,), 1.0))
    tensors.put(tensor)
    assert done.get()
    assert (tensor.cpu() == 2).all()
    child.join()
"""


def test_a_tensor_is_shared_between_processes_and_its_event_leaks(tmp_path: Path) -> None:
    """``docs/found/pytorch_imported_events.md``: who receives a tensor never destroys the event that comes with it."""
    program = tmp_path / "shared.py"
    program.write_text(SHARED, encoding="utf-8")
    done = run_words([str(program)])
    assert re.findall(r"(?:rule|observed): +(.*)", done.stdout) == [
        "handles_are_destroyed_at_quiescence",
        f"1 event from cudaIpcOpenEventHandle on device 0, no pointer to it left, created at {program}:6",
    ], done.stdout + done.stderr
    done = run_words([str(program)], "--at-exit", "none")
    assert done.returncode == 0, done.stdout + done.stderr
