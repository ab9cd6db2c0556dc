"""``quiesce prove``: every case red on its fault and green without it, and the whole matrix of cases and faults."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from quiesce.allocators.cases import Case, CaseKind
from quiesce.allocators.execution import Proof, ProofMatrix, deciding_faults, every_fault, prove
from quiesce.cli.arguments import add_cases, add_topic
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode
from quiesce.cli.selection import select_cases
from quiesce.model.wording import counted
from quiesce.reporting import Palette, align, clean_line

HEADER: Final = ("case", "without", "fault", "with it", "found")
LEGEND: Final = "F: its own fault, found · x: another fault, found · .: nothing found · !: its own fault, not found"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_cases(parser)
    add_topic(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--matrix", action="store_true", help="show every case against every fault")
    form.add_argument("--json", action="store_true", help="write the whole matrix as JSON")


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Prove and show. Raises :class:`ConfigurationError` where there is no case."""
    catalogue = select_cases(arguments.targets, arguments.topic)
    for error in catalogue.errors:
        console.complain(str(error))
    if not catalogue.cases and not arguments.json:
        return ExitCode.COULD_NOT_RUN
    table = Table(catalogue.cases)

    def show(proof: Proof) -> None:
        console.end_progress()
        console.write(table.line(_row(proof)))

    if not arguments.json:
        console.write(table.line(HEADER))
    try:
        matrix = prove(
            catalogue.cases,
            lambda done, total: console.progress(done, total, "proved"),
            None if arguments.json else show,
            every_fault if arguments.matrix or arguments.json else deciding_faults,
        )
    finally:
        console.end_progress()
    if arguments.json:
        console.write(json.dumps(matrix_record(matrix), indent=2, sort_keys=True) + "\n")
    else:
        console.write(render_end(matrix, whole=arguments.matrix, palette=console.palette))
    if any(not proof.ok for proof in matrix.proofs):
        return ExitCode.FINDINGS
    return ExitCode.COULD_NOT_RUN if catalogue.errors else ExitCode.NOTHING_FOUND


def matrix_record(matrix: ProofMatrix) -> dict[str, Any]:
    """Return the matrix as JSON values; ``row`` holds the rules that each fault broke, and no silent fault."""
    return {
        "faults": list(matrix.faults),
        "proofs": [
            {
                "case": proof.case,
                "kind": str(proof.kind),
                "fault": proof.fault,
                "finds": proof.finds,
                "green": str(proof.green.verdict),
                "ok": proof.ok,
                "reason": proof.reason,
                "red": None if proof.red is None else str(proof.red.verdict),
                "row": {fault: list(found) for fault, found in proof.row if found},
            }
            for proof in matrix.proofs
        ],
    }


class Table:
    """A table whose rows are written one by one: the cases are known before, and so is the room that they take."""

    def __init__(self, cases: Iterable[Case]) -> None:
        known = [
            HEADER,
            *([clean_line(case.identifier), "", _name_of_fault(case.kind, case.fault), "", ""] for case in cases),
        ]
        self._widths = [max(len(row[column]) for row in known) for column in range(len(HEADER))]

    def line(self, row: Sequence[str]) -> str:
        """Return a row, which ends in a line feed."""
        return "  ".join(cell.ljust(width) for cell, width in zip(row, self._widths, strict=True)).rstrip() + "\n"


def render_end(matrix: ProofMatrix, *, whole: bool, palette: Palette) -> str:
    """Return what follows the rows: the broken cases explained, the ``whole`` matrix if it is wanted, what is shown."""
    broken = [proof for proof in matrix.proofs if not proof.ok]
    lines = []
    for proof in broken:
        why = f"BROKEN {clean_line(proof.case)}: {clean_line(proof.reason)}"
        lines += ["", f"{palette.bad}{why}{palette.end}"]
    if whole:
        lines += ["", *matrix_lines(matrix)]
    colour = palette.bad if broken else palette.good
    return "\n".join([*lines, "", f"{palette.strong}{colour}{conclusion(matrix)}{palette.end}"]) + "\n"


def conclusion(matrix: ProofMatrix) -> str:
    """Return what the proofs show: broken cases, caught bugs, and cases that pass where they have to."""
    good = [proof for proof in matrix.proofs if proof.ok]
    catching = [proof for proof in good if proof.fault]
    controls = sum(proof.kind is CaseKind.CONTROL for proof in good)
    of_no_bug_here = [proof for proof in good if proof.kind is not CaseKind.CONTROL and not proof.fault]
    bugs = counted(len(matrix.faults), "historic bug")
    said = []
    if broken := len(matrix.proofs) - len(good):
        said.append(f"{broken} of {counted(len(matrix.proofs), 'case')} {'is' if broken == 1 else 'are'} broken")
    if caught := len({proof.fault for proof in catching}):
        switched_on = counted(len({proof.fault for proof in matrix.proofs if proof.fault}), "historic bug")
        of_them = switched_on if switched_on == counted(caught, "historic bug") else f"{caught} of {switched_on}"
        were = "was" if caught == 1 else "were each"
        said.append(f"{of_them}, switched on in the reference, {were} caught ({counted(len(catching), 'case')})")
    if controls:
        said.append(f"{counted(controls, 'control')} passed with each of {bugs}")
    if of_no_bug_here:
        cases = counted(len(of_no_bug_here), "case")
        them, their = ("it", "its") if len(of_no_bug_here) == 1 else ("them", "their")
        run = f"to see {them} fail, run {them} on a backend with {their} bug"
        said.append(f"{cases} without a fault passed on the reference ({run})")
    return "; ".join(said)


def _name_of_fault(kind: CaseKind, fault: str) -> str:
    """Return a fault, or in place of it which kind of case has none."""
    return clean_line(fault) or f"({'own' if kind is CaseKind.REGRESSION else kind})"


def _row(proof: Proof) -> list[str]:
    row = [clean_line(proof.case), str(proof.green.verdict), _name_of_fault(proof.kind, proof.fault)]
    if proof.red is None:
        return [*row, "", ""]
    found = ", ".join(dict.fromkeys(finding.rule for finding in proof.red.findings)) or "nothing"
    return [*row, str(proof.red.verdict), clean_line(found)]


def matrix_lines(matrix: ProofMatrix) -> list[str]:
    """Return the matrix, its columns numbered from top to bottom, and the names of the numbers below it."""
    numbers = [str(number) for number in range(1, len(matrix.faults) + 1)]
    width = len(numbers[-1]) if numbers else 0
    header = [["", _grouped([number.rjust(width)[place] for number in numbers])] for place in range(width)]
    rows = [[clean_line(proof.case), _grouped(cells(proof, matrix.faults))] for proof in matrix.proofs]
    names = [[number, fault] for number, fault in zip(numbers, matrix.faults, strict=True)]
    legend = align(names, right=frozenset({0})) if names else []
    return [*align([*header, *rows]), "", LEGEND, *legend]


def _grouped(signs: list[str]) -> str:
    """Join signs, with a blank after every ten, so that dozens of columns fit a terminal and can be counted."""
    return " ".join("".join(signs[start : start + 10]) for start in range(0, len(signs), 10))


def cells(proof: Proof, faults: tuple[str, ...]) -> list[str]:
    """Return one case's row: a sign for each fault."""
    found = dict(proof.row)
    signs = {(True, True): "F", (True, False): "!", (False, True): "x", (False, False): "."}
    return [signs[fault == proof.fault, bool(found.get(fault))] for fault in faults]
