"""``quiesce explore``: generated sequences on one backend; what fails is shrunk and saved as a case file."""

from __future__ import annotations

import argparse
import contextlib
import json
from pathlib import Path
from typing import Final

from quiesce import shell
from quiesce.amounts import counted
from quiesce.cases.case import Case
from quiesce.cases.writer import write_case
from quiesce.cli.arguments import Once, add_timeout, add_verbose, folder, operation_count, output_file, seed_number
from quiesce.cli.console import Console
from quiesce.cli.exit_codes import ExitCode
from quiesce.cli.file_errors import explain
from quiesce.cli.saved_cases import save_or_complain, tell_shrinking
from quiesce.cli.selection import choose_described
from quiesce.files import naming
from quiesce.generation.campaign import CampaignResult, run_campaign
from quiesce.generation.coverage import STATES
from quiesce.generation.saving import FOLDER, save
from quiesce.reporting.text import clean_line

OPERATIONS_DEFAULT: Final = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("--backend", action=Once, required=True, metavar="NAME", help="the backend to explore")
    parser.add_argument("--seed", type=seed_number, default=0, metavar="N", help="seed of the sequences (default: 0)")
    parser.add_argument(
        "--operations",
        type=operation_count,
        default=OPERATIONS_DEFAULT,
        metavar="N",
        help=f"end after so many operations (default: {OPERATIONS_DEFAULT:,})",
    )
    parser.add_argument(
        "--hostile", action="store_true", help="also misuse the allocator: double frees, foreign pointers, …"
    )
    parser.add_argument(
        "--save",
        type=folder,
        default=Path(FOLDER),
        metavar="DIR",
        help=f"where a failing sequence becomes a case file (default: {FOLDER})",
    )
    parser.add_argument("--coverage", action="store_true", help="count how often each operation met each state")
    parser.add_argument(
        "--coverage-json", type=output_file, metavar="FILE", help="write these counts to a file, with the seed"
    )
    add_timeout(parser)
    add_verbose(parser)


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Explore and say what was found. Raises :class:`quiesce.errors.QuiesceError` where nothing can run."""
    usable = choose_described(arguments.backend, arguments.timeout)

    def keep(case: Case) -> None:
        with contextlib.suppress(OSError):  # it is told when the shorter one cannot be saved either
            save(case, arguments.save)
        tell_shrinking(case, console)

    try:
        result = run_campaign(
            usable.backend,
            seed=arguments.seed,
            operations=arguments.operations,
            hostile=arguments.hostile,
            found=keep,
            progress=console.progress,
            name=usable.name,
        )
    finally:
        console.end_progress()
    if told := render(result):
        console.write(f"{told}\n")
    if arguments.coverage:
        console.write(f"{result.coverage.table()}\n")
    is_written = arguments.coverage_json is None or _try_coverage(result, arguments.coverage_json, console)
    if result.discovery is not None:
        case = result.discovery.case
        console.write(f"{write_case(case)}\n")
        if saved := save_or_complain(case, arguments.save, console):
            path = saved.as_posix()
            console.write(f"saved as {clean_line(path)}; this command makes it fail again:\n")
            console.write(f"  {shell.join(['quiesce', 'run', shell.operand(path), '--backend', usable.name])}\n\n")
    console.write(f"{conclusion(result)}\n")
    if result.discovery is not None:
        return ExitCode.FINDINGS
    return ExitCode.NOTHING_FOUND if result.operations and is_written else ExitCode.COULD_NOT_RUN


def _try_coverage(result: CampaignResult, path: Path, console: Console) -> bool:
    try:
        write_coverage(result, path)
    except OSError as error:
        console.complain(f"the coverage is not written: {explain(error)}")
        return False
    return True


def write_coverage(result: CampaignResult, path: Path) -> None:
    """Write a campaign's coverage as JSON: equal campaigns give equal bytes. Raises :class:`OSError`."""
    document = {
        "backend": result.backend,
        "seed": result.seed,
        "hostile": result.hostile,
        "operations": result.operations,
        "states": dict(STATES),
        "reached": result.coverage.counts(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path):
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8", newline="\n")


def render(result: CampaignResult) -> str:
    """Return why sequences ended early and what was found, each where there is something to say."""
    lines = [
        f"{counted(count, 'sequence')} ended early: {clean_line(why)}"
        for why, count in sorted(result.unsupported.items())
    ]
    discovery = result.discovery
    if discovery is None:
        return "".join(f"{line}\n" for line in lines)
    lines += [
        f"{discovery.shrunk.rule} is broken in sequence {discovery.number}",
        f"  expected: {clean_line(discovery.shrunk.expected)}",
        f"  observed: {clean_line(discovery.shrunk.observed)}",
        f"  shrunk to {counted(len(discovery.case.body), 'line')} in {counted(discovery.trials, 'trial')}",
    ]
    if discovery.interrupted:
        lines.append("  shrinking was interrupted; 'quiesce shrink' goes on from the case")
    if not discovery.trials:
        lines.append(
            "  it did not fail a second time, so it is not shrunk: the backend depends on more than the requests"
        )
    return "\n".join(lines) + "\n"


def conclusion(result: CampaignResult) -> str:
    """Return what a campaign shows, as one sentence."""
    backend = clean_line(result.backend)
    kind = "hostile sequence" if result.hostile else "valid sequence"
    performed = (
        f"{counted(result.operations, 'operation')} in {counted(result.sequences, kind)} with seed {result.seed}"
    )
    if result.discovery is not None:
        return f"{result.discovery.shrunk.rule} is broken on {backend}: found after {performed}"
    if not result.operations:
        return f"nothing could be performed on {backend}: no verdict"
    return f"{performed} {'breaks' if result.operations == 1 else 'break'} no rule on {backend}"
