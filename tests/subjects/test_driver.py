"""Drivers: one that cannot even say hello is a finding, and one on the simulated runtime finds the case's device."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.backend import Backend, BackendFault, DeviceProfile
from quiesce.model.errors import BackendUnavailable
from quiesce.model.rules import IN_PROTOCOL, SURVIVES
from quiesce.simulator.runtime.build import find_compiler, require_platform
from quiesce.subjects.build import Built
from quiesce.subjects.driver import open_driver
from quiesce.subjects.manifest import Run, Subject
from quiesce.subjects.parser import read_manifest

Write = Callable[..., Path]

SIMULATED = """
size_t available, total;
char line[4096];
while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\\n")) {
    cudaMemGetInfo(&available, &total);
    if (!strcmp(line, "hello 1\\n"))
        puts("{\\"protocol\\":1,\\"name\\":\\"a\\",\\"version\\":\\"1\\",\\"capabilities\\":[],\\"promises\\":[],"
             "\\"gauges\\":{\\"reserved\\":[\\"ledger\\"]}}");
    else if (!strcmp(line, "gauges\\n"))
        printf("{\\"gauges\\":{\\"reserved\\":{\\"ledger\\":%zu}}}\\n", total);
    else
        puts("{\\"outcome\\":\\"done\\"}");
    fflush(stdout);
}
return 0;
"""


@contextmanager
def driver(subject: Subject, *command: str) -> Iterator[Backend]:
    built = Built({"source": str(subject.folder)}, dict(os.environ))
    with open_driver("row", subject, Run(command), subject.variants[0], built) as opened:
        yield opened


@pytest.fixture
def subject(write_subject: Write) -> Subject:
    return read_manifest(write_subject() / "subject.toml")


def test_it_has_the_name_that_it_gives_itself(subject: Subject) -> None:
    with driver(subject, sys.executable, "-m", "quiesce.backends.serving", "reference") as opened:
        assert opened.describe().name == "reference"


@pytest.mark.parametrize(
    ("code", "rule", "evidence"),
    [
        ("import sys; sys.exit('no memory for me')", SURVIVES, "no memory for me"),
        ("input(); print('hello to you'); input()", IN_PROTOCOL, ""),
    ],
)
def test_one_that_says_no_hello_is_at_fault(subject: Subject, code: str, rule: str, evidence: str) -> None:
    with driver(subject, sys.executable, "-c", code) as opened, pytest.raises(BackendFault) as raised:
        opened.describe()
    assert raised.value.rule == rule
    assert evidence in raised.value.evidence


def test_one_that_is_not_there_is_no_fault_of_the_subject(subject: Subject) -> None:
    with driver(subject, "no-such-driver") as opened, pytest.raises(BackendUnavailable, match="cannot be started"):
        opened.describe()


AGAIN = """\
import json, os, sys
reply = {"protocol": 1, "name": "a", "version": "1", "capabilities": [], "promises": [], "again": True}
reply |= {"gauges": {"reserved": ["ledger"]}}
capacity = 0
for line in sys.stdin:
    if line.startswith("open"):
        capacity = int(line.split("capacity=")[1].split()[0])
    answers = {"hello 1\\n": reply, "gauges\\n": {"gauges": {"reserved": {"ledger": capacity + os.getpid()}}}}
    if line == "quit\\n":
        break
    print(json.dumps(answers.get(line, {"outcome": "done"})), flush=True)
"""


def test_one_that_serves_again_finds_each_profile_in_one_process(write_subject: Write) -> None:
    try:
        require_platform()
        find_compiler()
    except BackendUnavailable as unavailable:
        pytest.skip(str(unavailable))
    manifest = 'title = "A"\nupstream = "b"\nsimulated = "cuda:12"\ncases = ["x"]\nrun = { command = ["x"] }\n'
    subject = read_manifest(write_subject(f'{manifest}versions = [{{ version = "1" }}]\n') / "subject.toml")
    readings: list[int] = []
    with driver(subject, sys.executable, "-c", AGAIN) as opened:
        for capacity in (1 << 20, 3 << 20):
            context = opened.open(DeviceProfile(capacity_bytes=capacity))
            readings += context.readings().values()
            context.close()
    assert readings[1] - readings[0] == 2 << 20, "the same process, on the other device"


def test_on_the_simulated_runtime_each_process_finds_the_device_of_its_profile(
    write_subject: Write, tmp_path: Path
) -> None:
    try:
        require_platform()
        find_compiler()
    except BackendUnavailable as unavailable:
        pytest.skip(str(unavailable))
    client = compile_client(tmp_path, SIMULATED)
    manifest = 'title = "A"\nupstream = "b"\nsimulated = "cuda:12"\ncases = ["x"]\nrun = { command = ["x"] }\n'
    subject = read_manifest(write_subject(f'{manifest}versions = [{{ version = "1" }}]\n') / "subject.toml")
    with driver(subject, str(client)) as opened:
        for capacity in (1 << 20, 3 << 20):
            context = opened.open(DeviceProfile(capacity_bytes=capacity))
            assert list(context.readings().values()) == [capacity]
            context.close()
