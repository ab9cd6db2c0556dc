"""``quiesce exec``: run a program on the simulated CUDA or HIP runtime, and judge what it did with memory.

The program waits for what is imported here; what judges and reports is imported while it runs.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quiesce.cli.arguments import add_at_exit, report_folder, seed_number, whole_number
from quiesce.cli.console import Console, tell_github
from quiesce.cli.endings import ExitCode
from quiesce.cli.exec_conditions import environment_of, exec_command, simulated_by
from quiesce.model.errors import ConfigurationError
from quiesce.model.results import Result
from quiesce.model.wording import EXEC_VARIABLE
from quiesce.simulator.runtime.build import build_all
from quiesce.simulator.runtime.cache import describe_replacement
from quiesce.simulator.runtime.kernel_compiler import INSTALL_KERNELS, kernels_can_run
from quiesce.simulator.runtime.launch import RECYCLING, MachineSettings, run_program

if TYPE_CHECKING:
    from quiesce.simulator.judge.known_errors import KnownError


def prepare_cache(console: Console) -> None:
    """Compile what a program needs before it begins, and say what a user has to know; nothing where all is as usual.

    Raises :class:`BackendUnavailable` where it can't be compiled.
    """
    replacement = describe_replacement()
    if replacement:
        console.complain(replacement)
    build_all(console.complain)


_DECIMAL: Final = re.compile(r"(\d+) ?([KMGT])i?B?", re.IGNORECASE)
"""A size as many write it, whose unit is meant to be a power of 1024."""
_ORDERS_MAX: Final = 1000
_LOOKED_AT: Final = 2
"""How many launches of each kernel are looked at for races of its blocks in device memory."""
_CURRENT_TEST: Final = "PYTEST_CURRENT_TEST"
"""Where pytest names the test that runs. The simulated runtime reads it, to name the test that launched a kernel."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.description = (
        "Run a program without a GPU, and report leaks, double frees, use after free and races. "
        "Exit code: 0 nothing found, 1 findings, 2 not tested or failed."
    )
    parser.add_argument("words", nargs="+", metavar="PROGRAM", help="the program and its arguments, after --")
    parser.add_argument(
        "--flavour",
        metavar="NAME:N",
        help="the runtime that the program was built for: cuda:11, 12, 13 or hip:5, 6, 7 (default: the runtime that "
        "the program loads first, or else cuda:12)",
    )
    parser.add_argument("--capacity", type=_capacity, metavar="SIZE", help="memory of each device (default: 16GiB)")
    parser.add_argument(
        "--devices", type=whole_number, default=1, metavar="N", help="how many devices there are (default: 1)"
    )
    parser.add_argument(
        "--schedule",
        choices=("eager", "lazy", "seeded"),
        default="eager",
        help="when queued work runs: eager at once, lazy as late as allowed, seeded in an order from --seed "
        "(default: eager)",
    )
    _add_conditions(parser)
    parser.add_argument(
        "--report",
        type=report_folder,
        metavar="DIR",
        help="write report.html, report.json, junit.xml and results.jsonl here",
    )


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed", type=seed_number, default=0, metavar="N", help="seed of the schedule and of failures (default: 0)"
    )
    parser.add_argument(
        "--recycle",
        choices=RECYCLING,
        default=RECYCLING[0],
        help=f"when freed addresses are used again (default: {RECYCLING[0]})",
    )
    parser.add_argument(
        "--pools",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="let CuPy, PyTorch and numba keep freed memory in pools of their own; --no-pools switches these off, so "
        "that uses of freed memory are found (default: yes)",
    )
    parser.add_argument(
        "--fail",
        action="append",
        default=[],
        metavar="KIND:N",
        help="make calls fail: KIND:N the N-th call of a kind, KIND:N+ all from the N-th on, KIND:P%% P percent of "
        "them; add =CODE for the error code. Kinds: device, pinned, managed, memory (any of these three), stream, "
        "event, graph, copy, launch, synchronize",
    )
    _add_errors(parser)
    add_at_exit(parser)
    parser.add_argument(
        "--stacks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="record native and Python call stacks, to show where blocks were allocated (default: yes)",
    )
    parser.add_argument(
        "--static-runtime",
        choices=("redirect", "refuse"),
        default="redirect",
        help="what happens to a CUDA runtime that is linked into the program statically: redirect its functions to the "
        "simulated runtime, or refuse it a device (default: redirect)",
    )
    _add_kernels(parser)
    _add_ledger(parser)


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ring",
        type=whole_number,
        default=1 << 20,
        metavar="N",
        help="how many calls to keep in memory (default: 1,048,576); older ones are saved on disk",
    )
    parser.add_argument(
        "--disk",
        type=_size,
        metavar="SIZE",
        help="how much of the temporary folder the older calls of each process may take (default: half of what is "
        "free); a process that needs more is not judged for races",
    )


def _add_errors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--api-errors",
        choices=("tell", "inconclusive", "finding"),
        default="inconclusive",
        help="what comes of refused work (a launch, a copy, a fill, a free, a wait, a record) if the program does not "
        "look at the error: only tell it, leave the run without a verdict, or report a finding (default: inconclusive)",
    )
    parser.add_argument(
        "--known-errors",
        type=Path,
        metavar="FILE",
        help="a TOML file of errors that are expected, by function and line",
    )


def _add_kernels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernels",
        choices=("run", "off"),
        help="whether CUDA kernels compute: run them on the CPU from their PTX, or only put them in order "
        "(default: run if quiesce[kernels] is installed)",
    )
    parser.add_argument(
        "--kernel-checks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="judge every access of kernels that compute: out of bounds, use after free, misaligned, never written "
        "(default: yes)",
    )
    parser.add_argument(
        "--explore-orders",
        type=_orders,
        default=1,
        metavar="N",
        help="run each launch in N orders of its blocks and threads, and report kernels that leave other bytes then, "
        "and races of threads in device memory (default: 1, the usual order)",
    )
    parser.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="also report what many correct programs do: reads of words that are only partly written and of shared "
        "memory that nobody wrote, blocks that write the same value to the same place, and copies to the host of "
        "memory that nobody wrote (default: no)",
    )
    parser.add_argument(
        "--kernel-seconds",
        type=whole_number,
        metavar="N",
        help="stop a kernel that runs for more than N seconds, and name its thread and line (default: wait for it)",
    )
    parser.add_argument(
        "--kernel-faults",
        choices=("continue", "stop"),
        default="continue",
        help="what happens after a wrong access: continue without it, or stop the kernel and break the device as on a "
        "GPU (default: continue)",
    )


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Run, judge and report. Raises :class:`QuiesceError` where nothing can run."""
    kernels = _runs_kernels(arguments)
    known = known_errors_of(arguments)
    asked = {
        **({"follows": 1} if arguments.flavour is None else {}),
        **({} if arguments.capacity is None else {"capacity": arguments.capacity}),
        "devices": arguments.devices,
        "recycle": arguments.recycle,
        "ring": arguments.ring,
        "saved": _half_of_the_disk() if arguments.disk is None else arguments.disk,
        "fail": ",".join(arguments.fail),
        **({"stacks": 1} if arguments.stacks else {}),
        **({"checks": 1, "races": _LOOKED_AT} if kernels and arguments.kernel_checks else {}),
        **({"orders": arguments.explore_orders} if arguments.explore_orders > 1 else {}),
        **({"strict": 1} if arguments.strict else {}),
        **({"seconds": arguments.kernel_seconds} if arguments.kernel_seconds else {}),
        **({"stop": 1} if arguments.kernel_faults == "stop" else {}),
    }
    redirects = arguments.static_runtime == "redirect"
    settings = MachineSettings(simulated_by(arguments), arguments.schedule, arguments.seed, asked, redirects, kernels)
    if arguments.report:
        from quiesce.reporting.folder import clear_folder

        clear_folder(arguments.report)  # where another run writes its reports, this one does not begin
    prepare_cache(console)
    environment = {**environment_of(arguments), EXEC_VARIABLE: exec_command(arguments, exec_defaults())}
    environment.pop(_CURRENT_TEST, None)  # a test that runs this command is none of the program's
    options = shlex.split(exec_command(arguments, exec_defaults()))[2:-1]
    run = run_program(arguments.words, settings, environment, meanwhile=_import_judges, options=options)
    with run as ended:
        from quiesce.cli.judging import end_of, judge_processes, kernels_were_left_out
        from quiesce.reporting.pytest_handover import read_sessions

        sessions = read_sessions(ended.folder)
        end = end_of(ended.status, arguments.words, sessions)
        of_programs = judge_processes(ended, arguments, exec_defaults(), end, console, known)
        lacks_compiler = arguments.kernels is None and not kernels_can_run() and kernels_were_left_out(ended, arguments)
    results = [*of_programs, *(each for session in sessions for each in session.results)]
    is_reported = not arguments.report or _report(arguments, results, console)
    from quiesce.reporting.terminal import render_summary

    told = [each for session in sessions if session.ended is not None for each in session.results]
    console.write(render_summary(results, palette=console.palette, told=told))
    tell_github(of_programs, console)
    code = _exit_code(results, end, console)
    if lacks_compiler:
        console.complain(f"CUDA kernels did not compute; to let them compute, run {INSTALL_KERNELS}")
    return ExitCode.COULD_NOT_RUN if code is ExitCode.NOTHING_FOUND and not is_reported else code


def _runs_kernels(arguments: argparse.Namespace) -> bool:
    """Say whether kernels are to compute. Raises ConfigurationError where that was asked for and can't be."""
    can_run = arguments.kernels != "off" and kernels_can_run()
    if arguments.kernels == "run" and not can_run:
        raise ConfigurationError(f"--kernels run needs packages that are not installed; run {INSTALL_KERNELS}")
    return can_run


def known_errors_of(arguments: argparse.Namespace) -> tuple[KnownError, ...]:
    """Return the errors that are expected. Raises ConfigurationError for a file that makes no sense."""
    if arguments.known_errors is None:
        return ()
    from quiesce.simulator.judge.known_errors import read_known_errors

    return read_known_errors(arguments.known_errors)


def _report(arguments: argparse.Namespace, results: list[Result], console: Console) -> bool:
    """Write the reports, and return whether they could be written."""
    from quiesce.cli.report_writing import write_reports
    from quiesce.cli.run_record import describe_machine

    return write_reports(arguments.report, results, console, seed=arguments.seed, run=describe_machine())


def _import_judges() -> None:
    import quiesce.cli.judging
    import quiesce.reporting.terminal  # noqa: F401


def _orders(text: str) -> int:
    number = whole_number(text)
    if not 1 <= number <= _ORDERS_MAX:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number of orders; write a whole number from 1 to {_ORDERS_MAX}"
        )
    return number


def _size(text: str) -> int:
    from quiesce.model.requests import RequestError, evaluate_size

    try:
        return evaluate_size(text, {})
    except RequestError:
        decimal = _DECIMAL.fullmatch(text)
        instead = f"write {decimal[1]}{decimal[2].upper()}iB" if decimal else "write bytes, such as 64MiB"
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; {instead}") from None


def _half_of_the_disk() -> int:
    return shutil.disk_usage(tempfile.gettempdir()).free // 2


def _capacity(text: str) -> int:
    size_bytes = _size(text)
    if size_bytes == 0:
        raise argparse.ArgumentTypeError("no program can use a device without memory; write at least 1MiB")
    return size_bytes


def exec_defaults() -> argparse.Namespace:
    """Return the options of the command where none is given."""
    return exec_arguments(["true"])


def exec_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments that stand for some words after ``quiesce exec``."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(list(words))


def _exit_code(results: list[Result], end: str, console: Console) -> ExitCode:
    """Return 1 for findings; 2 where something has no verdict, or the program itself says that it failed."""
    if any(result.verdict.is_failure for result in results):
        return ExitCode.FINDINGS
    if end:
        console.complain(end)
    unresolved = any(result.is_unresolved for result in results)
    return ExitCode.COULD_NOT_RUN if unresolved else ExitCode.NOTHING_FOUND
