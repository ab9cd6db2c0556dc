"""``quiesce prove``: every case red on its fault and green without it, and the case by fault matrix behind that."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from quiesce.amounts import counted
from quiesce.cli.arguments import nonempty
from quiesce.cli.console import Console
from quiesce.cli.exit_codes import ExitCode
from quiesce.cli.selection import select_cases
from quiesce.execution import Proof, ProofMatrix, prove
from quiesce.reporting.palette import Palette
from quiesce.reporting.terminal import align
from quiesce.reporting.text import clean_line

FAULTS_SHOWN_MAX: Final = 10
"""Up to so many faults the matrix is short enough to be shown without asking."""
LEGEND: Final = "F: its own fault, found · x: another fault, found · .: nothing found · !: its own fault, not found"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "targets", nargs="*", type=nonempty, metavar="CASE", help="case file, folder or identifier (default: all)"
    )
    parser.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="only cases of this topic")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--matrix", action="store_true", help="show every case against every fault")
    form.add_argument("--json", action="store_true", help="write the whole matrix as JSON")


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Prove and show. Raises :class:`quiesce.errors.ConfigurationError` where there is no case."""
    catalogue = select_cases(arguments.targets, arguments.topic)
    for error in catalogue.errors:
        console.complain(str(error))
    if not catalogue.cases and not arguments.json:
        return ExitCode.COULD_NOT_RUN
    try:
        matrix = prove(catalogue.cases, lambda done, total: console.progress(done, total, "proved"))
    finally:
        console.end_progress()
    if arguments.json:
        console.write(json.dumps(matrix_record(matrix), indent=2, sort_keys=True) + "\n")
    else:
        whole = arguments.matrix or len(matrix.faults) <= FAULTS_SHOWN_MAX
        console.write(render_proofs(matrix, whole=whole, palette=console.palette))
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


def render_proofs(matrix: ProofMatrix, *, whole: bool, palette: Palette) -> str:
    """Return one row for each case, the broken ones explained, and the ``whole`` matrix where it is wanted."""
    broken = [proof for proof in matrix.proofs if not proof.ok]
    lines = align([["case", "without", "fault", "with it", "found"], *map(_row, matrix.proofs)])
    for proof in broken:
        why = f"BROKEN {clean_line(proof.case)}: {clean_line(proof.reason)}"
        lines += ["", f"{palette.bad}{why}{palette.end}"]
    if whole:
        lines += ["", *matrix_lines(matrix)]
    colour = palette.bad if broken else palette.good
    proved = f"{counted(len(matrix.proofs), 'case')} against {counted(len(matrix.faults), 'fault')}: "
    proved += f"{len(broken)} broken" if broken else "every case proves itself"
    return "\n".join([*lines, "", f"{palette.strong}{colour}{proved}{palette.end}"]) + "\n"


def _row(proof: Proof) -> list[str]:
    row = [clean_line(proof.case), str(proof.green.verdict), clean_line(proof.fault) or "(control)"]
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
