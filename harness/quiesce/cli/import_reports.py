"""``quiesce import``: take the reports of native leak checkers as findings."""

from __future__ import annotations

import argparse
import stat
from pathlib import Path

from quiesce.cli.arguments import add_at_exit, nonempty, report_folder
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode, exit_code
from quiesce.cli.report_writing import write_reports
from quiesce.cli.version import version
from quiesce.model import wording
from quiesce.model.findings import Finding, Grade
from quiesce.model.results import Result, Verdict
from quiesce.reporting import clean_line, render_summary, why_unavailable
from quiesce.simulator.judge import AtExit
from quiesce.simulator.judge.leak_checkers.judgement import FORMATS, detect, judge_report
from quiesce.simulator.judge.leak_checkers.report import UnreadableReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "files",
        nargs="+",
        type=nonempty,
        metavar="FILE",
        help="Valgrind's XML, or a log with a report of LeakSanitizer or MSVC's CRT",
    )
    parser.add_argument(
        "--format",
        choices=sorted(FORMATS),
        help="which checker wrote the reports (default: as each file says); "
        "a log without a report then means that nothing leaked",
    )
    add_at_exit(parser)
    parser.add_argument(
        "--report",
        type=report_folder,
        metavar="DIR",
        help="write report.html, report.json, junit.xml and results.jsonl here",
    )


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Read, judge and report each file; one that can't be read leaves the others their results."""
    results: list[Result] = []
    unread = False
    is_reported = True
    for path in arguments.files:
        try:
            results.append(_result(path, arguments.format, arguments.at_exit, console))
        except OSError as error:
            unread = True
            console.complain(
                f"'{path}' cannot be read ({error.strerror or error}); name a file that a leak checker wrote"
            )
        except UnreadableReport as error:
            unread = True
            console.complain(str(error))
    if arguments.report:
        run = {"version of quiesce": version()}
        is_reported = write_reports(arguments.report, results, console, seed=0, run=run)
        if note := why_unavailable():
            console.complain(note)
    if results:
        console.write(render_summary(results, palette=console.palette))
    return exit_code(results, incomplete=unread or not is_reported)


def _refuse_special(path: str) -> None:
    """Raise :class:`UnreadableReport` for what may never end or can be read only once, and :class:`OSError`."""
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise UnreadableReport(path, None, "this is not a regular file", "name a file that a leak checker wrote")


def _result(path: str, tool: str | None, at_exit: AtExit, console: Console) -> Result:
    _refuse_special(path)
    chosen = FORMATS[tool] if tool else detect(path)
    judgement = judge_report(chosen.records(path), at_exit)
    for note in judgement.notes:
        console.complain(f"{clean_line(path)}: {clean_line(note)}")
    verdict = _verdict(judgement.findings)
    words = ["quiesce", "import", *(["--format", tool] if tool else [])]
    return Result(
        case=path,
        title="",
        path=path,
        backend=chosen.tool,
        verdict=verdict,
        reason="only a pointer into the middle of each block is left" if verdict is Verdict.INCONCLUSIVE else "",
        findings=judgement.findings,
        reproduce=wording.join(
            [*words, *([] if at_exit is AtExit.LOST else ["--at-exit", at_exit]), wording.operand(path)]
        ),
    )


def _verdict(findings: tuple[Finding, ...]) -> Verdict:
    if not findings:
        return Verdict.PASSED
    doubtful = all(finding.grade is Grade.INCONCLUSIVE for finding in findings)
    return Verdict.INCONCLUSIVE if doubtful else Verdict.FAILED
