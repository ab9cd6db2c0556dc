"""Backends served over the wire protocol: the same answers as in this process, and a plain word where there is none."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys

import pytest

from quiesce.backends.command.backend import CommandBackend
from quiesce.backends.command.program import Program
from quiesce.backends.reference import backend, faulty
from quiesce.backends.serving import encode_observation, read_profile, serve
from quiesce.model.backend import Backend, DeviceProfile
from quiesce.model.operations import Operation
from quiesce.model.requests import parse_request

LINES = """\
s = create stream
e = create event
a = allocate 1048576 on s
launch on s writes=a
record event e on s
wait event e
free a on s
b = allocate 1048576
c = allocate 4096 pinned
d = stage c on s
synchronize event e
query event e
free c
free c
trim
trim pinned
q = frobnicate
"""


def operations() -> list[Operation]:
    return [parse_request(line) for line in LINES.splitlines() if "frobnicate" not in line]


def served(*names: str) -> Backend:
    return CommandBackend([sys.executable, "-m", "quiesce.backends.serving", *names], name="served")


@pytest.mark.parametrize("fault", [None, "pool.no_squeeze"])
def test_a_served_backend_answers_as_it_does_here(fault: str | None) -> None:
    here = backend() if fault is None else faulty(fault)
    there = served("reference" if fault is None else f"reference:{fault}")
    assert there.describe().capabilities == here.describe().capabilities
    assert there.describe().gauges == here.describe().gauges
    near, far = here.open(DeviceProfile()), there.open(DeviceProfile())
    for operation in operations():
        assert far.perform(operation) == near.perform(operation)
        assert far.readings() == near.readings()
    assert far.close() == near.close()


def replies(*requests: str) -> list[dict[str, object]]:
    written = io.BytesIO()
    serve(backend(), [f"{request}\n".encode() for request in requests], written)
    return [json.loads(line) for line in written.getvalue().splitlines()]


OPEN = "open capacity=1048576 pinned-capacity=1048576 alignment=256 granularity=512 devices=1 flavour=hip"


def test_a_request_that_nobody_knows_is_unsupported() -> None:
    answers = replies("a = allocate 1", f"{OPEN} initialization=once", "q = frobnicate", "quit", "trim")
    assert [answer["outcome"] for answer in answers] == ["unsupported", "done", "unsupported"]


def test_more_observations_than_a_line_holds_are_told_in_portions() -> None:
    allocations = [f"b[{number}] = allocate 2048" for number in range(300)]
    frees = [f"free b[{number}]" for number in range(300)]
    answers = replies(f"{OPEN} initialization=once", *allocations, *frees, "close", "more", "gauges")
    assert answers[-1]["gauges"]
    assert all(answer["outcome"] in ("done", "allocated") for answer in answers[:-2])


def test_no_line_is_longer_than_the_protocol_allows() -> None:
    """Neither what is said of a long request, nor what is told of things with long names."""
    slot = "s" * 20_000
    requests = [f"{slot} = create stream", f"a = allocate 1048576 on {slot}", f"free a on {slot}", "q" * 65_000]
    answers = replies(f"{OPEN} initialization=once", *requests, "close", *["more"] * 3)
    assert answers[4]["outcome"] == "unsupported"
    assert all(len(json.dumps(answer)) < 65_536 for answer in answers)


def test_what_is_taken_is_not_made_again_before_it_is_given_back() -> None:
    """Also where the backend itself would: a driver owes that, and a context does not."""
    requests = ["a = allocate 64", "a = allocate 64", "a = create event", "free a", "a = allocate 64"]
    nodes = ["n = node", "n = node", "drop n", "n = node"]
    answers = replies(
        f"{OPEN} initialization=once", *requests, *nodes, "close", f"{OPEN} initialization=once", requests[0]
    )
    outcomes = [str(answer["outcome"]) for answer in answers]
    assert outcomes[1:6] == ["allocated", "rejected", "rejected", "done", "allocated"]
    assert outcomes[6:10] == ["done", "rejected", "done", "done"]
    assert outcomes[-1] == "allocated", "another context has slots of its own"


def test_the_profile_of_an_open_line_is_read_whole() -> None:
    profile = read_profile(f"{OPEN} initialization=once")
    assert (profile.capacity_bytes, profile.devices, str(profile.flavour)) == (1 << 20, 1, "hip")
    with pytest.raises(KeyError):
        read_profile("open capacity=1")


def test_observations_have_the_names_of_the_protocol() -> None:
    near = backend().open(DeviceProfile())
    seen = [encode_observation(each) for operation in operations() for each in near.perform(operation).observations]
    assert {str(fields["seen"]) for fields in seen} >= {"backing-allocated", "copy-enqueued", "event-recorded"}
    assert not [key for fields in seen for key in fields if key.endswith("_bytes")]


@pytest.mark.parametrize(("arguments", "said"), [([], "write: python -m"), (["nothing"], "unknown backend 'nothing'")])
def test_what_cannot_be_served_ends_with_one_line(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "quiesce.backends.serving", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (run.returncode, run.stdout) == (2, "")
    assert said in run.stderr
    assert len(run.stderr.splitlines()) == 1


AGAIN = """\
import os, sys
from quiesce.backends.reference import backend
from quiesce.backends.serving import serve_again

class Telling:
    describe = backend().describe
    def open(self, profile):
        sys.stderr.write(f"{os.getpid()}\\n")
        return backend().open(profile)

serve_again(Telling(), sys.stdin.buffer, sys.stdout.buffer)
"""
"""A driver that says which process serves a context."""
DIES = f"{AGAIN}os.abort()\n"

needs_fork = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")


@needs_fork
def test_served_again_each_context_is_a_child_as_fresh_as_the_first() -> None:
    requests = [f"{OPEN} initialization=repeatable", "a = allocate 4096", "close", "gauges", "again"]
    driver = Program([sys.executable, "-c", AGAIN], 60)

    def ask(request: str) -> dict[str, object]:
        answer: dict[str, object] = json.loads(driver.exchange(request))
        return answer

    assert ask("hello 1")["again"] is True
    first, second = [[ask(request) for request in requests] for _ in range(2)]
    driver.finish()
    assert first == second
    assert first[-1] == {"outcome": "done"}
    processes = driver._pipes.errors(60).split()[2:]
    assert len({*processes, str(driver._process.pid)}) == 3


@needs_fork
@pytest.mark.parametrize("last", ["quit", "again"])
def test_a_child_that_ends_badly_takes_its_parent_with_it(last: str) -> None:
    requests = f"{OPEN} initialization=repeatable\n{last}\n"
    run = subprocess.run([sys.executable, "-c", DIES], input=requests, capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGABRT
    assert len(run.stdout.splitlines()) == 1


@needs_fork
def test_the_process_backend_keeps_a_driver_that_serves_again() -> None:
    driver = CommandBackend([sys.executable, "-c", AGAIN], name="again")
    assert driver.serves_again
    here = backend()
    for _ in range(2):
        near, far = here.open(DeviceProfile()), driver.open(DeviceProfile())
        for operation in operations():
            assert far.perform(operation) == near.perform(operation)
        assert far.close() == near.close()
    (program,) = driver._kept
    program.finish()
