"""``quiesce exec``: run a program on the simulated CUDA or HIP runtime, and judge what it did with memory.

The program waits for what is imported here; what judges and reports is imported while it runs.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from quiesce import shell
from quiesce.cli.arguments import report_folder, seed_number, whole_number
from quiesce.cli.at_exit import add_at_exit
from quiesce.cli.console import Console
from quiesce.cli.exit_codes import ExitCode
from quiesce.reporting.text import clean_line
from quiesce.results import Result, Verdict
from quiesce.simulator.flavours import parse_flavour
from quiesce.simulator.launch import MachineSettings, run_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("words", nargs="+", metavar="PROGRAM", help="the program and its arguments, behind --")
    parser.add_argument("--flavour", default="cuda:12", metavar="NAME:N", help="hip:5 to 7, cuda:11 to 13 (cuda:12)")
    parser.add_argument("--capacity", type=_capacity, metavar="SIZE", help="memory of each device (default: 16GiB)")
    parser.add_argument(
        "--devices", type=whole_number, default=1, metavar="N", help="how many devices there are (default: 1)"
    )
    parser.add_argument(
        "--schedule", choices=("eager", "lazy", "seeded"), default="eager", help="when work runs (default: eager)"
    )
    parser.add_argument("--seed", type=seed_number, default=0, metavar="N", help="seed of the schedule and of failures")
    parser.add_argument(
        "--recycle", choices=("eager", "never"), default="eager", help="whether addresses and handles are used again"
    )
    parser.add_argument(
        "--fail",
        action="append",
        default=[],
        metavar="KIND:N",
        help="fail the N-th call of a kind; N+: from it on; P%%: by chance; =CODE behind it: with that error. Kinds: "
        "device, pinned, managed, memory (any of them), stream, event, graph, copy, launch, synchronize",
    )
    add_at_exit(parser)
    parser.add_argument(
        "--stacks", action="store_true", help="keep call stacks, native and Python, and say where blocks came from"
    )
    parser.add_argument(
        "--ring", type=whole_number, default=1 << 20, metavar="N", help="how many observations are kept"
    )
    parser.add_argument(
        "--report", type=report_folder, metavar="DIR", help="write report.json, report.html and junit.xml here"
    )


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Run, judge and report. Raises :class:`quiesce.errors.QuiesceError` where nothing can run."""
    simulated = parse_flavour(arguments.flavour)
    options = {
        **({} if arguments.capacity is None else {"capacity": arguments.capacity}),
        "devices": arguments.devices,
        "recycle": arguments.recycle,
        "ring": arguments.ring,
        "fail": ",".join(arguments.fail),
        **({"stacks": 1} if arguments.stacks else {}),
    }
    settings = MachineSettings(simulated, arguments.schedule, arguments.seed, options)
    command_line = shell.join(arguments.words)
    with run_program(arguments.words, settings, os.environ, meanwhile=_import_judges) as ended:
        names = _names(command_line, len(ended.ledgers))
        end = _bad_end(ended.status)
        results = [
            _result(path, arguments, name, end, console) for path, name in zip(ended.ledgers, names, strict=True)
        ]
    is_reported = not arguments.report or _report(arguments, results, console)
    if results:
        from quiesce.reporting.terminal import render_summary

        console.write(render_summary(results, palette=console.palette))
    code = _exit_code(results, end, console)
    return ExitCode.COULD_NOT_RUN if code is ExitCode.NOTHING_FOUND and not is_reported else code


def _report(arguments: argparse.Namespace, results: list[Result], console: Console) -> bool:
    """Write the reports, and return whether they could be written."""
    from quiesce.cli.report_writing import write_reports
    from quiesce.cli.run_record import describe_machine

    return write_reports(arguments.report, results, console, seed=arguments.seed, run=describe_machine())


def _import_judges() -> None:
    import quiesce.reporting.terminal
    import quiesce.traces.judgement  # noqa: F401


def _capacity(text: str) -> int:
    from quiesce.requests import RequestError, evaluate_size

    try:
        return evaluate_size(text, {})
    except RequestError:
        raise argparse.ArgumentTypeError(f"'{text}' is no size of a memory; write bytes, such as 64MiB") from None


def _names(command_line: str, count: int) -> list[str]:
    """Return the names of the processes, in the order of their numbers, which are not told: they differ."""
    return [command_line] if count == 1 else [f"{command_line} (process {number})" for number in range(1, count + 1)]


def _bad_end(status: int) -> str:
    """Return what the program says of itself by its exit status, or the signal that ended it; empty where all is well.

    What such a program did may break no rule for having been cut short: that is no verdict on its memory.
    """
    if not status:
        return ""
    return f"the program ended with {signal.Signals(-status).name if status < 0 else f'status {status}'}"


def _result(path: Path, arguments: argparse.Namespace, name: str, end: str, console: Console) -> Result:
    from quiesce.cli.exec_conditions import conditions_of, reproduce_command
    from quiesce.simulator.ledger import open_ledger
    from quiesce.simulator.stacks import open_stacks
    from quiesce.traces.judgement import judge
    from quiesce.traces.memory_history import MemoryRecorder
    from quiesce.traces.program import describe_program

    simulated = parse_flavour(arguments.flavour)
    with open_ledger(path) as ledger, open_stacks(path) as stacks:
        memory = MemoryRecorder(ledger.lost, ledger.observations) if arguments.report else None
        judgement = judge(ledger, arguments.at_exit, stacks, memory)
        console.complain(f"{clean_line(name)}: {ledger.observations} observations on {simulated}")
        for note in judgement.notes:
            console.complain(f"  {clean_line(note)}")
        return Result(
            case=name,
            title="",
            path="",
            backend=str(simulated),
            verdict=_verdict(bool(judgement.findings), end),
            reason="" if judgement.findings else end,
            findings=judgement.findings,
            operations=ledger.observations,
            reproduce=reproduce_command(arguments, _defaults()),
            program=None
            if memory is None
            else describe_program(ledger, stacks, judgement, memory, conditions_of(arguments, ledger)),
        )


def _defaults() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(["true"])


def _verdict(found: bool, end: str) -> Verdict:
    if found:
        return Verdict.FAILED
    return Verdict.INCONCLUSIVE if end else Verdict.PASSED


def _exit_code(results: list[Result], end: str, console: Console) -> ExitCode:
    """Return 1 for findings; 2 where nothing was judged, or the program itself says that it failed."""
    if any(result.verdict.is_failure for result in results):
        return ExitCode.FINDINGS
    if not results:
        console.complain("the program never called the simulated runtime: nothing was judged")
    if end:
        console.complain(end)
    return ExitCode.NOTHING_FOUND if results and not end else ExitCode.COULD_NOT_RUN
