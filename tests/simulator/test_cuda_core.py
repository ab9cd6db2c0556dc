"""NVIDIA's ``cuda.core`` on the simulated driver: a buffer that is dropped in a thread without a context.

NVIDIA/cuda-python#2497: on a default stream "the free then fails (or was historically treated as success …), leaking
memory". Release 1.1.1 does, and 1.2 makes the context current that the buffer was allocated in.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from typing import Final

import pytest


def _release() -> tuple[int, ...] | None:
    try:
        return tuple(int(number) for number in importlib.metadata.version("cuda-core").split(".")[:2])
    except importlib.metadata.PackageNotFoundError:
        return None


RELEASE: Final = _release()
pytestmark = pytest.mark.skipif(RELEASE is None, reason="it needs cuda-core: tox -e cuda-core-1.1,cuda-core-1.2")

MAKE: Final = """
import threading
from cuda.core import Device, DeviceMemoryResource
device = Device(0)
device.set_current()
resource, stream = DeviceMemoryResource(device), device.{stream}
buffers = [resource.allocate(1 << 20, stream=stream) for _ in range(3)]
def drop():
    {first}
    buffers.clear()
"""
ELSEWHERE: Final = "thread = threading.Thread(target=drop)\nthread.start()\nthread.join()\nstream.sync()\n"
HERE: Final = "drop()\nstream.sync()\n"
FOREIGN: Final = MAKE.format(stream="default_stream", first="") + ELSEWHERE
CORRECT: Final = {
    "in the thread that allocated": MAKE.format(stream="default_stream", first="") + HERE,
    "in a thread with a context": MAKE.format(stream="default_stream", first="device.set_current()") + ELSEWHERE,
    "on a stream that was created": MAKE.format(stream="create_stream()", first="") + ELSEWHERE,
}


def run(text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:13", "--", sys.executable]
    return subprocess.run([*command, "-c", text], capture_output=True, text=True, check=False)


def test_a_buffer_that_is_dropped_in_a_foreign_thread_leaks_before_1_2() -> None:
    done = run(FOREIGN)
    assert RELEASE is not None
    leaks = RELEASE < (1, 2)
    rules = {"nothing_is_left_at_quiescence"} if leaks else set()
    assert set(re.findall(r"rule: +(\w+)", done.stdout)) == rules, done.stdout + done.stderr
    assert done.returncode == leaks, done.stderr
    assert bool(re.search(r"3,?145,?728 bytes.* 3 blocks", done.stdout)) is leaks


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_program_accuses_nobody(name: str) -> None:
    done = run(CORRECT[name])
    assert done.returncode == 0, done.stdout + done.stderr
