"""Requests sent at once: a driver that takes them is judged as one that is asked one by one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.backends.example_pools import ONE_BY_ONE, build

from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.cases.expansion import expand
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.conformance import Conformance, run_conformance
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.allocators.lockstep import Trial, run_lockstep
from quiesce.backends.command import CommandBackend
from quiesce.backends.command.program import Program
from quiesce.model.backend import BackendFault, DeviceProfile
from quiesce.model.observations import BackingFreed
from quiesce.model.operations import Allocate, Free, Mark, Operation, Trim
from quiesce.model.outcomes import Allocated, Done
from quiesce.model.rules import IN_PROTOCOL, IN_TIME, SURVIVES

OPERATIONS = 800
CASES = Path(__file__).parents[2] / "cases"
LOGGED = {
    "static void answer(const char *line) {": (
        "static void answer(const char *line) {\n"
        '    FILE *requests = fopen("REQUESTS", "a");\n'
        '    if (requests == NULL || fprintf(requests, "%s\\n", line) < 0) abort();\n'
        "    fclose(requests);\n"
    )
}
FAULTS: dict[str, dict[str, str]] = {
    "correct": {},
    "aligns nothing": {"/ alignment * alignment;": "/ alignment * alignment + 8;"},
    "runs out of memory too soon": {"if (!made && cached != NULL)": "if (false)"},
    "counts what it trims twice": {"reserved_bytes -= block->size;": "reserved_bytes -= 2 * block->size;"},
    "dies at the 40th allocation": {
        "static Block *pool_allocate(const char *name, uint64_t size) {": (
            "static Block *pool_allocate(const char *name, uint64_t size) {\n"
            "    static int calls;\n    if (++calls == 40) abort();\n"
        )
    },
    "answers twice": {
        "static void answer_free(const char *name) {": (
            "static void answer_free(const char *name) {\n"
            '    if (live_blocks == 7) reply("\\"outcome\\":\\"done\\"");\n'
        )
    },
}


def program(folder: Path, changes: Mapping[str, str], *, batches: bool) -> CommandBackend:
    built = build(
        folder / ("batches" if batches else "one_by_one"), "pool", changes if batches else {**changes, **ONE_BY_ONE}
    )
    return CommandBackend([str(built)], name="pool")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> CommandBackend:
    return program(tmp_path_factory.mktemp("pool"), {}, batches=True)


def account(conformance: Conformance) -> list[tuple[object, ...]]:
    """Return every result without its addresses, which differ between two processes."""
    return [
        (
            result.case,
            result.verdict,
            result.operations,
            result.skipped,
            [(found.rule, found.operation_index, found.line, found.request) for found in result.findings],
        )
        for result in conformance.results
    ]


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_both_ways_have_the_same_verdicts_operation_for_operation(tmp_path: Path, fault: str) -> None:
    together, one_by_one = (
        run_conformance(
            program(tmp_path, FAULTS[fault], batches=batches),
            operations=OPERATIONS,
            cases=load(find_cases([CASES / "pool", CASES / "sizes"])).cases,
            trials_max=20,
        )
        for batches in (True, False)
    )
    assert account(together) == account(one_by_one)
    assert together.not_exercised == one_by_one.not_exercised
    assert together.conforms is (fault == "correct")


def test_both_ways_perform_the_same_requests_and_one_takes_far_fewer_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: dict[bool, int] = {}
    logs: dict[bool, list[str]] = {}
    exchange, send_ahead = Program.exchange, Program.send_ahead
    for batches in (True, False):
        backend = program(tmp_path, LOGGED, batches=batches)
        folder = tmp_path / f"run_{batches}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        turns[batches] = 0

        def counted(self: Program, request: str, batches: bool = batches) -> bytes:
            turns[batches] += 1
            return exchange(self, request)

        def sent(self: Program, requests: list[str], batches: bool = batches) -> bool:
            turns[batches] += 1
            return send_ahead(self, requests)

        monkeypatch.setattr(Program, "exchange", counted)
        monkeypatch.setattr(Program, "send_ahead", sent)
        run_campaign(backend, seed=1, operations=OPERATIONS)
        lines = (folder / "REQUESTS").read_text().splitlines()
        logs[batches] = [line for line in lines if line != "more"]
    assert logs[True] == logs[False]
    assert turns[True] * 4 < turns[False]


def steps_of(*requests: str, backend: CommandBackend) -> Trial:
    text = "title: A sequence\nkind: found\nfinds: x\n\n" + "".join(f"{request}\n" for request in requests)
    return run_lockstep(backend, DeviceProfile(), expand(parse_text(text, "x.case", "topic/x")))


MANY = [f"b[{n}] = allocate 4096" for n in range(30)]


def test_what_a_sequence_leaves_is_given_back_in_one_batch(
    pool: CommandBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    exchange = Program.exchange

    def noted(self: Program, request: str) -> bytes:
        asked.append(request)
        return exchange(self, request)

    monkeypatch.setattr(Program, "exchange", noted)
    assert not steps_of(*MANY, backend=pool).findings
    assert not [request for request in asked if request.startswith("free")]
    assert "trim" in asked, "one request is no batch"


def test_a_driver_that_dies_within_a_batch_dies_at_that_request(tmp_path: Path) -> None:
    dying = program(
        tmp_path,
        {'"free %255s%n", name)) {': '"free %255s%n", name)) {\n        if (strcmp(name, "b[3]") == 0) abort();'},
        batches=True,
    )
    trial = steps_of(*MANY, *(f"free b[{n}]" for n in range(30)), backend=dying)
    (finding,) = trial.findings
    assert (finding.rule, finding.operation_index, finding.request) == (SURVIVES, 33, "free b[3]")
    assert "'free b[3]'" in finding.observed


def test_a_driver_that_hangs_within_a_batch_hangs_at_that_request(tmp_path: Path) -> None:
    changes = {'"free %255s%n", name)) {': '"free %255s%n", name)) {\n        while (strcmp(name, "b[3]") == 0) {}'}
    hanging = program(tmp_path, changes, batches=True).with_watchdog(1)
    trial = steps_of(*MANY, *(f"free b[{n}]" for n in range(30)), backend=hanging)
    (finding,) = trial.findings
    assert (finding.rule, finding.operation_index, finding.request) == (IN_TIME, 33, "free b[3]")


def test_what_happens_after_the_finding_adds_none(tmp_path: Path) -> None:
    """The driver has gone on with the batch by then, and died."""
    changes = {
        '"free %255s%n", name)) {': '"free %255s%n", name)) {\n        if (strcmp(name, "b[3]") == 0) abort();',
        "    live_bytes -= block->size;": '    live_bytes -= strcmp(block->name, "b[2]") == 0 ? 0 : block->size;',
    }
    trial = steps_of(*MANY, *(f"free b[{n}]" for n in range(30)), backend=program(tmp_path, changes, batches=True))
    assert {(found.operation_index, found.request) for found in trial.findings} == {(32, "free b[2]")}


def test_observations_of_a_batch_come_without_being_asked_for(pool: CommandBackend) -> None:
    context = pool.open(DeviceProfile())
    made: list[Operation] = [Allocate(f"b[{n}]", 512 * (n + 1)) for n in range(600)]
    operations: list[Operation] = [*made, *(Free(f"b[{n}]") for n in range(600)), Trim(), Allocate("c", 64)]
    context.foresee(operations)
    seen = []
    for operation in operations:
        reply = context.perform(operation)
        assert isinstance(reply.outcome, Allocated | Done)
        seen += [each for each in reply.observations if isinstance(each, BackingFreed)]
        context.readings()
    assert len(seen) == 600
    context.close()


def test_a_batch_that_is_not_performed_is_told_at_the_close(pool: CommandBackend) -> None:
    context = pool.open(DeviceProfile())
    context.foresee([Allocate("a", 512), Allocate("b", 1024), Free("a")])
    context.perform(Allocate("a", 512))
    closing = context.close()
    assert [type(seen).__name__ for seen in closing.observations] == [
        "BackingAllocated",
        "BackingFreed",
        "BackingFreed",
    ]


def test_a_batch_ends_before_a_mark_and_is_none_for_one_request(pool: CommandBackend) -> None:
    context = pool.open(DeviceProfile())
    told: list[list[Operation]] = [[Allocate("a", 64), Mark("m"), Free("a")], [Mark("m"), Free("a")], [Free("a")]]
    for operations in told:
        context.foresee(operations)
        context.perform(operations[0])
        context.readings()
    context.close()


def test_another_request_than_the_one_foreseen_is_an_error_of_the_caller(pool: CommandBackend) -> None:
    context = pool.open(DeviceProfile())
    context.foresee([Allocate("a", 64), Free("a")])
    with pytest.raises(ValueError, match="foreseen"):
        context.perform(Trim())
    context.program.end()


def test_a_driver_that_takes_no_batch_is_sent_none(tmp_path: Path) -> None:
    one_by_one = program(tmp_path, {}, batches=False)
    context = one_by_one.open(DeviceProfile())
    assert not context.foresees
    context.close()


SHORT = """
import sys
left = 0
for line in sys.stdin:
    line = line.rstrip()
    if line == "hello 1":
        print('{"protocol":1,"batch":true,"name":"short","version":"1",'
              '"capabilities":["memory"],"promises":[],"gauges":{}}')
    elif line == "quit":
        break
    else:
        print('{"outcome":"done"}')
        left = int(line.split()[1]) if line.startswith("batch") else max(0, left - 1)
    if not left:
        sys.stdout.flush()
"""


def test_a_driver_that_answers_the_line_of_the_batch_itself_speaks_no_protocol() -> None:
    context = CommandBackend([sys.executable, "-S", "-E", "-c", SHORT]).open(DeviceProfile())
    context.foresee([Trim(), Trim()])
    context.perform(Trim())
    context.perform(Trim())
    with pytest.raises(BackendFault) as fault:
        context.perform(Trim())
    assert fault.value.rule == IN_PROTOCOL
    context.close()
