"""Driver programs, proper and otherwise: whatever a driver does, the answer is a value or a named fault."""

import collections
import errno
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quiesce.backends.command import CommandBackend, parse_specification
from quiesce.backends.registry import Unusable, probe_backend
from quiesce.model.backend import Backend, BackendFault, Capability, Closing, Context, DeviceProfile, Reply
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import BackingFreed
from quiesce.model.operations import Allocate, Collect, Finalize, Free, Initialize, Launch, Mark, Operation, Trim
from quiesce.model.outcomes import Allocated, Done, OutOfMemory, Rejected, Unsupported
from quiesce.model.rules import IN_PROTOCOL, IN_TIME, SURVIVES

DRIVERS = Path(__file__).parent / "drivers"
PROFILE = DeviceProfile()
ALLOCATE = Allocate("a", 64)
SECONDS_MAX = 30.0
ZEROES = {(Gauge.LIVE, Source.CLAIM): 0, (Gauge.RESERVED, Source.CLAIM): 0, (Gauge.RESERVED, Source.LEDGER): 0}

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals, sessions and FIFOs are POSIX")


def driver(name: str, *arguments: str, watchdog_seconds: float = SECONDS_MAX) -> CommandBackend:
    command = [sys.executable, "-S", "-E", str(DRIVERS / f"{name}.py"), *arguments]
    return CommandBackend(command, name="command:test", watchdog_seconds=watchdog_seconds)


def fault_of(backend: Backend, operation: Operation = ALLOCATE) -> BackendFault:
    """Return the fault that an operation meets; the context must still close, at once and for good."""
    context = backend.open(PROFILE)
    with pytest.raises(BackendFault) as first:
        context.perform(operation)
    with pytest.raises(BackendFault) as second:
        context.readings()
    assert second.value.args == first.value.args, "a dead subject stays dead"
    assert context.close() == Closing()
    assert context.close() == Closing()
    return first.value


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(SECONDS_MAX)
        assert not thread.is_alive(), "a thread at a pipe outlives its driver"


def test_it_meets_the_contract() -> None:
    backend = driver("obedient")
    assert isinstance(backend, Backend)
    context = backend.open(PROFILE)
    assert isinstance(context, Context)
    context.close()


def test_a_proper_driver_describes_itself() -> None:
    described = driver("obedient").describe()
    assert (described.name, described.version) == ("command:test", "test driver 1.0")
    assert described.capabilities == {Capability.MEMORY, Capability.BACKING_LEDGER}
    assert described.gauges[Gauge.RESERVED] == set(Source)


@pytest.mark.parametrize(
    ("operation", "outcome"),
    [
        (ALLOCATE, Allocated(0x1000)),
        (Free("a"), Done()),
        (Initialize(), Rejected("already-initialized")),
        (Finalize(), Unsupported("no lifecycle")),
        (Collect(), OutOfMemory()),
        (Mark("m"), Done()),
    ],
)
def test_a_proper_driver_s_outcomes_are_returned(operation: Operation, outcome: object) -> None:
    context = driver("obedient").open(PROFILE)
    assert context.perform(operation).outcome == outcome
    context.close()


def test_observations_are_asked_for_until_all_are_told() -> None:
    context = driver("obedient").open(PROFILE)
    assert context.perform(Trim()) == Reply(Done(), tuple(BackingFreed(4096 + n, 1) for n in range(250)))
    assert context.perform(Free("a")) == Reply(Done())
    context.close()


def test_closing_returns_what_was_seen_and_the_last_readings() -> None:
    context = driver("obedient").open(PROFILE)
    assert context.readings() == ZEROES
    closing = context.close()
    assert closing == Closing((BackingFreed(0x1000, 64),), ZEROES)
    assert context.close() == closing


def test_a_request_that_no_line_can_hold_is_unsupported_and_the_driver_goes_on() -> None:
    context = driver("obedient").open(PROFILE)
    too_long = context.perform(Launch(reads=("block",) * 20_000)).outcome
    assert isinstance(too_long, Unsupported)
    assert "65,536" in too_long.reason
    assert context.perform(ALLOCATE).outcome == Allocated(0x1000)
    context.close()


def test_the_environment_is_the_one_given() -> None:
    command = [sys.executable, "-S", str(DRIVERS / "obedient.py")]
    environment = {**os.environ, "DRIVER_VERSION": "7"}
    assert CommandBackend(command, environment=environment).describe().version == "test driver 7"


BAD_REPLIES = {
    "garbage": (r"Segmentation fault\n", "is not JSON"),
    "an empty line": (r"\n", "is not JSON"),
    "binary": (r"\x00\xff\x80\xfe\n", "not UTF-8"),
    "two objects in a line": (r'{"outcome":"done"}{"outcome":"done"}\n', "is not JSON"),
    "two replies": (r'{"outcome":"done"}\n{"outcome":"done"}\n', "more than a line"),
    "the beginning of another": (r'{"outcome":"done"}\n{"out', "more than a line"),
    "no object": (r"[1]\n", "not a JSON object"),
    "deep nesting": ("[" * 60_000 + r"\n", "nested too deeply"),
    "NaN": (r'{"outcome":NaN}\n', "NaN"),
    "a huge number": (r'{"outcome":' + "9" * 5000 + r"}\n", "too long"),
    "an unknown outcome": (r'{"outcome":"maybe"}\n', "'maybe'"),
    "a line beyond 64 KiB": ('{"outcome":"' + "x" * 65_536 + r'"}\n', "more than 65,536 bytes"),
}


@pytest.mark.parametrize("written", BAD_REPLIES)
def test_nonsense_is_a_fault_of_the_driver(written: str) -> None:
    answer, complaint = BAD_REPLIES[written]
    fault = fault_of(driver("canned", "a = allocate", answer) if len(answer) < 20_000 else long_answer(answer))
    assert fault.rule == IN_PROTOCOL
    assert complaint in fault.observed
    assert "a = allocate 64" in fault.observed
    assert len(fault.observed) < 500


def long_answer(answer: str) -> CommandBackend:
    """Take the answer in two arguments: Windows has 32 KiB for a command line."""
    unit = "x" if "x" in answer else "["
    head, tail = answer.split(unit * 1000, 1)[0], answer.rsplit(unit, 1)[1]
    return driver("canned", "a = allocate", head, unit, str(answer.count(unit)), tail)


@pytest.mark.parametrize(
    ("request_", "answer", "complaint"),
    [
        ("close", r'{"outcome":"rejected","code":"busy"}\n', "rejected busy instead of done"),
        ("close", r"bye\n", "is not JSON"),
        ("gauges", r'{"gauges":{}}\n', "lacks the key 'live'"),
    ],
)
def test_nonsense_at_closing_is_a_fault_once(request_: str, answer: str, complaint: str) -> None:
    context = driver("canned", request_, answer).open(PROFILE)
    with pytest.raises(BackendFault, match=re.escape(complaint)) as fault:
        context.close()
    assert fault.value.rule == IN_PROTOCOL
    assert isinstance(context.close(), Closing)


def test_observations_without_end_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.backends.command.backend.OBSERVATIONS_MAX", 20)
    answer = r'{"outcome":"done","observations":[{"seen":"backing-refused","size":1}],"more":true}\n'
    context = driver("canned", "free", answer).open(PROFILE)
    with pytest.raises(BackendFault, match="unknown key 'outcome'") as fault:
        context.perform(Free("a"))
    assert fault.value.rule == IN_PROTOCOL
    assert "'more'" in fault.value.observed
    endless = driver("endless").open(PROFILE)
    with pytest.raises(BackendFault, match="more than 20 observations of 'free a'"):
        endless.perform(Free("a"))


@posix
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_crash_names_its_signal_and_keeps_the_last_words(name: str) -> None:
    fault = fault_of(driver("dying", "a = allocate", name))
    assert fault.rule == SURVIVES
    number = getattr(signal, name).value
    assert (
        fault.observed
        == f"the driver program was killed by {name} (exit code -{number}) instead of answering 'a = allocate 64'"
    )
    assert "last words" in fault.evidence
    pid = int(re.findall(r"pid (\d+)", fault.evidence)[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)  # a zombie would still be there


@pytest.mark.parametrize("code", ["0", "7"])
def test_an_early_exit_is_a_fault(code: str) -> None:
    fault = fault_of(driver("dying", "a = allocate", code))
    assert fault.rule == SURVIVES
    assert fault.observed == f"the driver program exited with code {code} instead of answering 'a = allocate 64'"


def test_an_exit_in_the_middle_of_a_reply_shows_the_half() -> None:
    fault = fault_of(driver("dying", "a = allocate", "7", '{"outcome":'))
    assert fault.rule == SURVIVES
    assert """having written '{"outcome":' of its reply""" in fault.observed


def test_a_driver_that_answers_and_leaves_is_missed_at_the_next_request() -> None:
    context = driver("dying", "a = allocate", "0", '{"outcome":"allocated","address":"0x10"}\n').open(PROFILE)
    assert context.perform(ALLOCATE).outcome == Allocated(0x10)
    with pytest.raises(BackendFault, match="exited with code 0 instead of answering 'free a'") as fault:
        context.perform(Free("a"))
    assert fault.value.rule == SURVIVES
    assert context.close() == Closing()


@posix
def test_a_driver_that_closes_its_output_but_stays_is_out_of_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.backends.command.program.EXIT_SECONDS", 0.2)
    fault = fault_of(driver("dying", "a = allocate", "closes"))
    assert fault.rule == IN_PROTOCOL
    assert "closed its standard output" in fault.observed


def test_a_failing_exit_after_quit_is_a_fault_with_its_report() -> None:
    backend = driver("dying", "quit", "23")
    backend._hello = driver("obedient")._introduced()
    context = backend.open(PROFILE)
    with pytest.raises(BackendFault, match="exited with code 23 after 'quit'") as fault:
        context.close()
    assert fault.value.rule == SURVIVES
    assert "leaked 64 bytes" in fault.value.evidence
    assert context.close().readings == ZEROES


@pytest.mark.parametrize(("request_", "shown"), [("a = allocate", "a = allocate 64"), ("open", "open capacity=")])
def test_a_hang_meets_the_watchdog(request_: str, shown: str) -> None:
    backend = driver("hanging", request_)
    backend.describe()
    backend._watchdog_seconds = 0.5
    fault = fault_of(backend)
    assert fault.rule == IN_TIME
    assert f"did not answer '{shown}" in fault.observed
    assert "within 0.5 s and was killed" in fault.observed
    assert "waiting for a lock" in fault.evidence
    if sys.platform != "win32":
        with pytest.raises(ProcessLookupError):
            os.kill(int(re.findall(r"pid (\d+)", fault.evidence)[0]), 0)


def test_a_hang_at_the_first_word_meets_the_bound_that_was_asked_for() -> None:
    probed = probe_backend(f"command:{shlex.join([sys.executable, str(DRIVERS / 'hanging.py'), 'hello'])}", 0.5)
    assert isinstance(probed, Unusable)
    assert "did not answer 'hello 1" in probed.reason
    assert "within 0.5 s" in probed.reason


def test_a_hang_after_quit_meets_the_watchdog() -> None:
    backend = driver("hanging", "quit")
    backend._hello = driver("obedient")._introduced()
    context = backend.open(PROFILE)
    context._program._watchdog_seconds = 0.2
    with pytest.raises(BackendFault, match="did not answer 'quit'") as fault:
        context.close()
    assert fault.value.rule == IN_TIME


@pytest.mark.parametrize("what", ["line", "lines"])
def test_a_flood_of_output_is_a_fault(what: str) -> None:
    context = driver("flooding", what).open(PROFILE)
    with pytest.raises(BackendFault) as fault:  # the first lines may arrive one by one and in time
        collections.deque((context.perform(ALLOCATE) for _ in range(100_000)), maxlen=0)
    assert fault.value.rule == IN_PROTOCOL
    assert context.close() == Closing()


def test_a_flood_of_errors_costs_nothing_and_its_end_is_kept() -> None:
    context = driver("flooding", "errors").open(PROFILE)
    assert context.perform(ALLOCATE).outcome == Allocated(0x1000)
    with pytest.raises(BackendFault) as fault:
        raise context._program.fault(IN_PROTOCOL, "asked for its evidence")
    assert fault.value.evidence.startswith("standard error (the last 65,536 of ")
    assert fault.value.evidence.rstrip().endswith("the end")
    context.close()


@pytest.fixture
def fifos(tmp_path: Path) -> Iterator[tuple[Path, int, Path, int]]:
    alive, release = tmp_path / "alive", tmp_path / "release"
    os.mkfifo(alive)
    os.mkfifo(release)
    reading, releasing = os.open(alive, os.O_RDONLY | os.O_NONBLOCK), os.open(release, os.O_RDWR)
    yield alive, reading, release, releasing
    os.close(reading)
    os.close(releasing)


def until_nobody_writes(reading: int) -> bytes:
    os.set_blocking(reading, True)
    return b"".join(iter(lambda: os.read(reading, 100), b""))


@posix
@pytest.mark.parametrize("group", ["same", "own"])
def test_a_child_that_keeps_the_pipes_open_delays_nothing(group: str, fifos: tuple[Path, int, Path, int]) -> None:
    alive, reading, release, releasing = fifos
    fault = fault_of(driver("spawning", group, str(alive), str(release)))
    os.write(releasing, b"x")
    assert fault.rule == SURVIVES
    assert "exited with code 3" in fault.observed
    # The driver's own session ends with it; a child that left it is beyond reach and was only not waited for.
    assert until_nobody_writes(reading).endswith(b"released") == (group == "own")


@posix
def test_a_context_that_nobody_closed_ends_with_the_harness(fifos: tuple[Path, int, Path, int]) -> None:
    alive, reading, _, _ = fifos
    command = [sys.executable, "-S", "-E", str(DRIVERS / "outliving.py"), str(alive)]
    program = (
        "from quiesce.model.backend import DeviceProfile\nfrom quiesce.backends.command import CommandBackend\n"
        f"context = CommandBackend({command!r}).open(DeviceProfile())"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    assert until_nobody_writes(reading) == b""


@posix
def test_a_driver_that_hangs_ends_with_a_harness_that_is_killed(fifos: tuple[Path, int, Path, int]) -> None:
    alive, reading, _, _ = fifos
    command = [sys.executable, "-S", "-E", str(DRIVERS / "outliving.py"), str(alive), "hangs"]
    program = (
        "from quiesce.model.backend import DeviceProfile\nfrom quiesce.backends.command import CommandBackend\n"
        "from quiesce.model.operations import Allocate\n"
        f"CommandBackend({command!r}).open(DeviceProfile()).perform(Allocate('a', 64))"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as harness:
        select.select([reading], [], [])
        assert os.read(reading, 100) == b"asked"
        harness.kill()
    assert until_nobody_writes(reading) == b""


def test_a_context_that_nobody_holds_is_ended() -> None:
    context = driver("obedient").open(PROFILE)
    process = context._program._process
    del context
    assert process.returncode is not None


def test_a_hello_that_changes_is_a_fault() -> None:
    backend = driver("obedient")
    backend._hello = driver("canned", "never", "")._introduced()
    assert backend.open(PROFILE).close().readings == ZEROES
    backend._environment = {**os.environ, "DRIVER_VERSION": "8"}
    backend.command = tuple(word for word in backend.command if word != "-E")
    changed = backend.open(PROFILE)
    with pytest.raises(BackendFault, match="otherwise than the first time") as fault:
        changed.readings()
    assert fault.value.rule == IN_PROTOCOL


def test_a_profile_that_the_driver_refuses_is_unavailable() -> None:
    backend = driver("canned", "open", r'{"outcome":"unsupported","reason":"no hip"}\n')
    with pytest.raises(BackendUnavailable, match=r"with unsupported \(no hip\); choose another device profile"):
        backend.open(PROFILE)


@pytest.mark.parametrize(
    "answer",
    [
        r'{"outcome":"allocated","address":"0x10"}\n',
        r'{"outcome":"out of memory"}\n',
        r'{"outcome":"rejected","code":"invalid-value"}\n',
    ],
)
def test_an_opening_is_done_or_unsupported_and_nothing_else(answer: str) -> None:
    """Any other answer would pass for a profile that cannot be provided, and no case would ever run."""
    fault = fault_of(driver("canned", "open", answer))
    assert fault.rule == IN_PROTOCOL
    assert "instead of done" in fault.observed


@pytest.mark.parametrize("request_", ["open", "a = allocate", "close"])
def test_observations_are_of_devices_that_there_are(request_: str) -> None:
    """What was seen on another device would be entered nowhere."""
    seen = r'"observations":[{"seen":"device-synchronized","device":1}]'
    outcome = r'"outcome":"allocated","address":"0x10"' if "allocate" in request_ else r'"outcome":"done"'
    context = driver("canned", request_, rf"{{{outcome},{seen}}}\n").open(PROFILE)
    if request_ == "close":
        context.perform(ALLOCATE)
    with pytest.raises(BackendFault, match="device 1, where 'open' gave 1") as fault:
        context.close() if request_ == "close" else context.perform(ALLOCATE)
    assert fault.value.rule == IN_PROTOCOL
    context.close()
    two = driver("canned", request_, rf"{{{outcome},{seen}}}\n").open(DeviceProfile(devices=2))
    two.perform(ALLOCATE)
    two.close()


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        (driver("canned", "hello", r"usage: pool [options]\n"), "is not JSON"),
        (driver("canned", "hello", r'{"protocol":2}\n'), "speaks protocol 2"),
        (driver("dying", "hello", "1"), r"exited with code 1 instead of answering 'hello 1' \(driver_survives"),
        (driver("dying", "quit", "3"), "exited with code 3 after 'quit'"),
        (driver("no such driver"), "No such file or directory"),
    ],
)
def test_a_driver_that_cannot_say_hello_is_unavailable(backend: CommandBackend, reason: str) -> None:
    with pytest.raises(BackendUnavailable, match=reason) as error:
        backend.describe()
    assert "wire_protocol.md" in error.value.remedy


def test_a_missing_program_is_unavailable_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="No such file") as error:
        CommandBackend([str(tmp_path / "driver")]).describe()
    assert error.value.backend == "command:driver"
    assert "build the driver program first" in error.value.remedy


@posix
@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_a_file_that_is_no_program_is_unavailable_with_a_remedy(tmp_path: Path, mode: int) -> None:
    script = tmp_path / "driver.py"
    script.write_text("neither magic number nor interpreter\n")
    script.chmod(mode)
    with pytest.raises(
        BackendUnavailable, match=os.strerror(errno.ENOEXEC if mode == 0o755 else errno.EACCES)
    ) as error:
        CommandBackend([str(script)]).open(PROFILE)
    assert "name its interpreter too" in error.value.remedy


@pytest.mark.parametrize("command", [[], [""], "driver", ["driver", "a\0b"]])
def test_a_command_that_is_none_is_a_configuration_error(command: list[str]) -> None:
    with pytest.raises(ConfigurationError):
        CommandBackend(command)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_watchdog_that_cannot_work_is_a_configuration_error(seconds: float) -> None:
    with pytest.raises(ConfigurationError, match="watchdog"):
        CommandBackend(["driver"], watchdog_seconds=seconds)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("./pool", ("./pool",)),
        ("python3 'my driver.py' --size=#1", ("python3", "my driver.py", "--size=#1")),
        ("run $(id); rm x|y", ("run", "$(id);", "rm", "x|y")),
    ],
)
def test_a_specification_is_split_into_words_and_nothing_else(text: str, command: tuple[str, ...]) -> None:
    backend = parse_specification(text)
    assert backend.command == command
    assert backend.name == f"command:{Path(command[0]).name}"


@pytest.mark.parametrize("text", ["", "  ", "'unclosed"])
def test_a_specification_without_a_command_is_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="command:PATH"):
        parse_specification(text)


AGAIN = r'{"protocol":1,"name":"one","version":"1","capabilities":["memory"],"promises":[],"gauges":{},"again":true}\n'


def test_a_driver_that_serves_again_serves_one_context_after_the_other() -> None:
    backend = driver("canned", "hello", AGAIN)
    first = backend.open(PROFILE)
    process = first._program._process
    assert first.close() == Closing()
    second, beside = backend.open(PROFILE), backend.open(PROFILE)
    assert second._program._process is process
    assert beside._program._process is not process, "two that are open at once are two processes"
    second.close()
    beside.close()
    assert process.poll() is None
    for program in backend._kept:
        program.end()


def test_what_a_driver_answers_instead_of_serving_again_is_a_fault() -> None:
    backend = driver("canned", "hello", AGAIN)
    context = backend.open(PROFILE)
    context._program._process.kill()
    with pytest.raises(BackendFault) as fault:
        context.close()
    assert fault.value.rule == SURVIVES
    assert not backend._kept
    backend.open(PROFILE).close()
    backend._kept.pop().end()
