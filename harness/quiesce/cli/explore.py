"""``quiesce explore``: generated sequences on one backend; what fails is shrunk and saved as a case file."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quiesce.allocators.cases import Case, write_case
from quiesce.allocators.generation import FOLDER, STATES, CampaignResult, Cause, Jobs, Search, Tally, reproduce_command
from quiesce.backends.registry import Usable
from quiesce.cli.arguments import (
    Once,
    add_report,
    add_seed,
    add_timeout,
    add_verbose,
    folder,
    jobs_number,
    operation_count,
    output_file,
    seconds_number,
    shard_of,
)
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode, explain
from quiesce.cli.executors import OnExecutor, engine_of
from quiesce.cli.exploring import (
    FROM_SOURCE,
    Corpus,
    Explored,
    Exploring,
    explore,
    is_red,
    open_corpus,
    results_of,
    whole_case,
)
from quiesce.cli.report_writing import describe_machine, write_reports
from quiesce.cli.resuming import KeptCampaign, forget_campaigns
from quiesce.cli.saved_cases import save_or_complain, tell_how_to_run
from quiesce.cli.selection import choose_described
from quiesce.cli.workers import Here, Workers
from quiesce.files import naming
from quiesce.model import wording
from quiesce.model.errors import ConfigurationError, QuiesceError, reproduced_by
from quiesce.model.results import Result
from quiesce.model.wording import counted
from quiesce.reporting import clean_line, clear_folder

OPERATIONS_DEFAULT: Final = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("--backend", action=Once, required=True, metavar="NAME", help="the backend to explore")
    add_seed(parser, "seed of the sequences")
    parser.add_argument(
        "--operations",
        type=operation_count,
        metavar="N",
        help=f"end after so many, of all shards together (default: {OPERATIONS_DEFAULT:,}; with --seconds no end)",
    )
    parser.add_argument("--seconds", type=seconds_number, metavar="S", help="begin no sequence after so many seconds")
    _add_engines(parser)
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
    parser.add_argument(
        "--corpus",
        metavar="DIR",
        help="keep what fails in this folder and run it first the next time; or python:FILE.py:FACTORY, which makes "
        "one of Hypothesis' databases",
    )
    add_report(parser, "write reports here")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on where a run with the same --report or --corpus was ended; from the beginning where there is none",
    )
    parser.add_argument("--coverage", action="store_true", help="count how often each operation met each state")
    parser.add_argument(
        "--coverage-json", type=output_file, metavar="FILE", help="write these counts to a file, with the seed"
    )
    add_timeout(parser)
    add_verbose(parser)


def _add_engines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs", type=jobs_number, default=1, metavar="N", help="run so many processes at a time, or 'all': one a core"
    )
    parser.add_argument(
        "--executor",
        action="append",
        default=[],
        metavar="NAME",
        help="run sequences on workers elsewhere instead: dask:ADDRESS, a scheduler of Dask, repeatable; or mpi, the "
        "ranks of 'mpiexec -n 9 python -m mpi4py.futures -m quiesce explore'",
    )
    parser.add_argument(
        "--shard",
        type=shard_of,
        default=(1, 1),
        metavar="K/N",
        help="run every N-th sequence, from the K-th on; 'quiesce report --merge' puts the reports of all together",
    )


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Explore and say what was found. Raises :class:`QuiesceError` where nothing can run."""
    usable = choose_described(arguments.backend, arguments.timeout, console.preparing)
    search = Search(usable.name, arguments.seed, arguments.hostile, arguments.shard)
    operations = arguments.operations
    if operations is None and arguments.seconds is None:
        operations = OPERATIONS_DEFAULT
    folder = _folder_of_state(arguments)
    kept = None if folder is None else KeptCampaign(folder, search, console)
    tally = _begin(arguments, kept, None if operations is None else search.share_of(operations))
    corpus = None if arguments.corpus is None else open_corpus(arguments.corpus, usable.description, search)
    outcome = _Outcome(arguments, search, usable, corpus, console)
    outcome.whole = [whole_case(search, usable.description, each) for each in tally.to_shrink()]
    exploring = Exploring(arguments.save, console, outcome.found, (lambda _: None) if kept is None else kept.keep)
    try:
        with _engine(arguments, usable, console) as jobs:
            if corpus is not None:
                own = {write_case(case) for case in outcome.whole}
                outcome.replayed = corpus.replay(jobs, arguments.save, console, own)
            explored = explore(search, jobs, usable.description, exploring, tally, arguments.seconds)
    except (KeyboardInterrupt, QuiesceError, OSError):
        _tell_how_to_go_on(arguments, kept, console)
        raise
    if explored.interrupted:
        _tell_how_to_go_on(arguments, kept, console)
    return outcome.conclude(explored)


def _folder_of_state(arguments: argparse.Namespace) -> Path | None:
    """Return where the state of the campaign is kept. Raises :class:`ConfigurationError` to go on with none."""
    if arguments.report is not None:
        kept_in: Path = arguments.report
        return kept_in
    if arguments.corpus is not None and not arguments.corpus.startswith(FROM_SOURCE):
        return Path(arguments.corpus)
    if arguments.resume:
        raise ConfigurationError("--resume: which campaign goes on? Write its --report DIR or --corpus DIR")
    return None


def _begin(arguments: argparse.Namespace, kept: KeptCampaign | None, operations_max: int | None) -> Tally:
    """Return what an earlier run came to, or remove it."""
    if kept is not None and arguments.resume:
        return kept.load(operations_max)
    if arguments.report is not None:
        clear_folder(arguments.report)
        forget_campaigns(arguments.report)
    elif kept is not None:
        kept.forget()
    return Tally(operations_max)


def _tell_how_to_go_on(arguments: argparse.Namespace, kept: KeptCampaign | None, console: Console) -> None:
    if kept is None or not kept.path.exists():
        return
    words = [word for word in arguments.command_words if word != "--resume"]
    console.end_progress()
    console.complain(f"this goes on where it ended: {wording.join(['quiesce', *words, '--resume'])}")


@dataclass(slots=True)
class _Outcome:
    """What a campaign leaves: case files, the corpus and reports, each at every finding and at the end."""

    arguments: argparse.Namespace
    search: Search
    usable: Usable
    corpus: Corpus | None
    console: Console
    replayed: Sequence[Result] = ()
    whole: list[Case] = field(default_factory=list)

    def found(self, case: Case, by_now: Explored) -> None:
        """Keep a failing sequence that nobody has shrunk yet, which is saved already."""
        self.whole.append(case)
        if self.corpus is not None:
            self.corpus.keep(case, self.console)
        self._report(by_now, KeyboardInterrupt())

    def conclude(self, explored: Explored) -> ExitCode:
        """Say what was found, and return the exit code of that."""
        console, result = self.console, explored.tally.result(self.search)
        if told := render(result, explored):
            console.write(f"{told}\n")
        if self.arguments.coverage:
            console.write(f"{result.coverage.table()}\n")
        path = self.arguments.coverage_json
        is_written = path is None or _try_coverage(result, path, console)
        for cause in explored.causes:
            _show(cause, self.search, self.arguments.save, console)
        self._replace_whole([cause.discovery.case for cause in explored.causes])
        is_written &= self._report(explored, explored.error)
        console.write(f"{conclusion(result, explored)}\n")
        if explored.error is not None:
            with reproduced_by(_up_to(result, self.search)):
                raise explored.error
        if explored.causes or is_red(self.replayed):
            return ExitCode.FINDINGS
        return ExitCode.NOTHING_FOUND if result.operations and is_written else ExitCode.COULD_NOT_RUN

    def _replace_whole(self, shrunk: list[Case]) -> None:
        """Keep what came of the sequences in the corpus, in place of the sequences."""
        if self.corpus is None:
            return
        for case in shrunk:
            self.corpus.keep(case, self.console)
        texts = {write_case(case) for case in shrunk}
        for case in self.whole:
            if write_case(case) not in texts:
                self.corpus.forget(case)

    def _report(self, explored: Explored, ending: BaseException | None) -> bool:
        if self.arguments.report is None:
            return True
        record = {**describe_machine(), f"version of {self.usable.name}": self.usable.description.version}
        results = [*self.replayed, *results_of(explored.tally.result(self.search), explored, self.search)]
        directory = self.arguments.report
        return write_reports(directory, results, self.console, seed=self.search.seed, run=record, ending=ending)


def _engine(arguments: argparse.Namespace, usable: Usable, console: Console) -> contextlib.AbstractContextManager[Jobs]:
    """Return what runs the sequences. Raises :class:`ConfigurationError` for an executor that there is not."""
    where = (arguments.backend, arguments.timeout, console.complain)
    if arguments.executor and arguments.jobs > 1:
        raise ConfigurationError("--jobs runs processes here and --executor elsewhere; write one of them")
    if arguments.executor:
        return OnExecutor(engine_of(arguments.executor), *where)
    return Workers(arguments.jobs, *where) if arguments.jobs > 1 else contextlib.nullcontext(Here(usable))


def _up_to(result: CampaignResult, search: Search) -> str:
    """Return the command that comes to the sequence after those of the result."""
    operations = result.operations + 1
    return reproduce_command(
        search.name, search.seed, hostile=search.hostile, operations=operations, shard=search.shard
    )


def _show(cause: Cause, search: Search, directory: Path, console: Console) -> None:
    """Show a cause and its case, and save that."""
    discovery = cause.discovery
    console.write(_described(cause))
    case = discovery.case
    saved = save_or_complain(case, directory, console)
    if saved is None or not discovery.interrupted:  # a case that nobody shortened is long, and is in the file
        console.write(f"{write_case(case)}\n")
    if saved is not None:
        tell_how_to_run(saved, search.name, console)


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


def render(result: CampaignResult, explored: Explored) -> str:
    """Return why sequences ended early, and how many fail, each where there is something to say."""
    lines = [
        f"{counted(count, 'sequence')} ended early: {clean_line(why)}"
        for why, count in sorted(result.unsupported.items())
    ]
    if explored.interrupted:
        lines.append(f"interrupted after {counted(result.operations, 'operation')}")
    if explored.error is not None:
        lines.append(f"ended by an error in quiesce itself after {counted(result.operations, 'operation')}")
    return "".join(f"{line}\n" for line in lines)


def _described(cause: Cause) -> str:
    discovery = cause.discovery
    lines = [
        f"{discovery.shrunk.rule} is broken in sequence {discovery.number}",
        f"  expected: {clean_line(discovery.shrunk.expected)}",
        f"  observed: {clean_line(discovery.shrunk.observed)}",
        f"  kind:     {clean_line(discovery.shrunk.kind)}",
    ]
    if discovery.interrupted:
        lines.append("  shrinking was interrupted; 'quiesce shrink' goes on from the case")
    elif discovery.trials:
        lines.append(f"  shrunk to {counted(len(discovery.case.body), 'line')} in {counted(discovery.trials, 'trial')}")
    else:
        lines.append(
            "  it did not fail a second time, so it is not shrunk: the backend depends on more than the requests"
        )
    if cause.shrunk > 1:
        lines.append(f"  {counted(cause.shrunk, 'sequence')} of those that were shrunk fail in this way")
    return "\n".join(lines) + "\n\n"


def conclusion(result: CampaignResult, explored: Explored) -> str:
    """Return what a search shows, as one sentence."""
    backend = clean_line(result.backend)
    kind = "hostile sequence" if result.hostile else "valid sequence"
    performed = (
        f"{counted(result.operations, 'operation')} in {counted(result.sequences, kind)} with seed {result.seed}"
    )
    rules = list(dict.fromkeys(cause.discovery.shrunk.rule for cause in explored.causes))
    if len(explored.causes) == 1:
        failing = counted(len(explored.tally.failing), "sequence")
        return f"{rules[0]} is broken on {backend}: found in {failing} of {performed}"
    if explored.causes:
        broken = f"{counted(len(rules), 'rule')} ({', '.join(rules)})"
        return f"{broken} broken on {backend} in {len(explored.causes)} ways: found in {performed}"
    if not result.operations:
        return f"nothing could be performed on {backend}: no verdict"
    return f"{performed} {'breaks' if result.operations == 1 else 'break'} no rule on {backend}"
