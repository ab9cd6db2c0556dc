"""``quiesce run``: every chosen case on every chosen backend, judged and reported."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from quiesce.allocators.cases import Case
from quiesce.allocators.execution import described, out_of_scope, run_and_prove
from quiesce.backends.registry import Usable
from quiesce.cli.arguments import REPORTS, add_cases, add_report, add_seed, add_timeout, add_topic, add_verbose
from quiesce.cli.console import Console, tell_github
from quiesce.cli.endings import ExitCode, end_early, exit_code, is_early_end
from quiesce.cli.report_writing import ReportWriting, describe_run
from quiesce.cli.selection import Choice, choose_backends, select_cases
from quiesce.cli.version import version
from quiesce.model import wording
from quiesce.model.backend import Backend
from quiesce.model.errors import CaseError, reproduced_by
from quiesce.model.results import Result
from quiesce.model.wording import counted
from quiesce.reporting import Chosen, left_out_lines, opening_lines, render_summary, why_unavailable

RunCase: TypeAlias = Callable[[Case, Backend], Result]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is going to do: each case on each backend, backend by backend."""

    cases: tuple[Case, ...]
    backends: Choice
    seed: int

    @property
    def size(self) -> int:
        """How many results a run that is not interrupted has."""
        return len(self.cases) * len(self.backends.usable)

    def __iter__(self) -> Iterator[tuple[Usable, Case]]:
        return ((usable, case) for usable in self.backends.usable for case in self.cases)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_cases(parser)
    parser.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="a backend; may be repeated (default: all that work here)",
    )
    add_topic(parser)
    add_report(parser, REPORTS)
    add_seed(parser, "seed that the report shows")
    add_timeout(parser)
    add_verbose(parser)


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Run, report and say what was found. Raises :class:`QuiesceError` where nothing can run."""
    catalogue = select_cases(arguments.targets, arguments.topic)
    backends = choose_backends(arguments.backend, arguments.timeout, console.preparing)
    plan = Plan(catalogue.cases, backends, arguments.seed)
    complain_about(catalogue.errors, console)
    if catalogue.cases:
        console.write(opening(plan))
    results: list[Result] = []
    ending: BaseException | None = None
    facts = describe_run(plan.size, plan.backends, catalogue.errors)
    reports = ReportWriting(arguments.report, console, seed=plan.seed, run=facts)
    try:
        with reports:
            perform(plan, run_and_prove, console, [results.append, reports.add])
    except (KeyboardInterrupt, Exception) as error:
        if not is_early_end(error):
            raise
        ending = error
    finally:
        console.end_progress()
    if catalogue.cases:
        names = [usable.name for usable in plan.backends.usable]
        console.write(render_summary(results, backends=names, named=plan.backends.named, palette=console.palette))
        tell_github(results, console)
    if arguments.report and (note := why_unavailable()):
        console.complain(note)
    if ending is not None:
        finished = f"{len(results)} of {counted(plan.size, 'result')}"
        return end_early(ending, finished, reports.kept_in, console)
    return exit_code(results, incomplete=bool(catalogue.errors) or reports.failed)


def perform(plan: Plan, run: RunCase, console: Console, keep: Iterable[Callable[[Result], None]]) -> None:
    """Run the plan; hand every result to each of ``keep`` before the next case begins.

    Results carry the backend's name as it was asked for, so that two drivers of one file name stay apart and the
    command to run them again works.
    """
    keepers = tuple(keep)
    for number, (usable, case) in enumerate(plan, 1):
        console.progress(number, plan.size, f"{usable.name} {case.identifier}")
        again = reproduce_command(case, usable.name, plan.seed)
        with reproduced_by(again):
            result = replace(run(case, usable.backend), backend=usable.name, reproduce=again)
        for keeper in keepers:
            keeper(result)


def reproduce_command(case: Case, backend: str, seed: int) -> str:
    """Return the command line that runs one case on one backend again, quoted for a POSIX shell."""
    words = ["quiesce", "run", wording.operand(case.path), "--backend", backend]
    return wording.join(words if seed == 0 else [*words, "--seed", str(seed)])


def opening(plan: Plan) -> str:
    """Return the first lines: how many cases, on which backends, and the seed."""
    backends = [_chosen(usable, plan.cases) for usable in plan.backends.usable]
    first, *rest = opening_lines(len(plan.cases), backends, plan.seed)
    unavailable = {each.name: each.in_short for each in plan.backends.skipped}
    left_out = (f"  {line}" for line in left_out_lines(unavailable))
    return "\n".join([f"quiesce {version()}: {first}", *rest, *left_out]) + "\n\n"


def _chosen(usable: Usable, cases: Sequence[Case]) -> Chosen:
    description = described(usable.backend)
    if description is None:
        return Chosen(usable.name, "", len(cases))
    runnable = sum(out_of_scope(case, description) is None for case in cases)
    return Chosen(usable.name, description.version, runnable)


def complain_about(errors: Iterable[CaseError], console: Console) -> None:
    """Name the case files that cannot be read; the others still run."""
    for error in errors:
        console.complain(str(error))
