from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.allocators.cases.case import Case, CaseKind
from quiesce.allocators.execution import Proof, ProofMatrix
from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.cli.prove import conclusion, matrix_lines, matrix_record, render_end
from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.reporting.text import PLAIN

FITS = "request_fits_but_out_of_memory"


def result(case: str, verdict: Verdict, *rules: str) -> Result:
    findings = tuple(Finding(rule, "", "") for rule in rules)
    return Result(case=case, title="", path="", backend="reference", verdict=verdict, findings=findings)


def proof(case: str, fault: str, *, ok: bool = True, kind: CaseKind = CaseKind.CONTROL) -> Proof:
    green = result(case, Verdict.PASSED)
    if not fault:
        return Proof(case, kind, "", "", green, None, True, "", (("pool.no_squeeze", ()), ("tape.leaks", ())))
    found = (FITS,) if ok else ()
    red = result(case, Verdict.FAILED if ok else Verdict.PASSED, *found)
    reason = "" if ok else f"the fault '{fault}' did not break '{FITS}'"
    return Proof(
        case,
        CaseKind.REGRESSION,
        fault,
        FITS,
        green,
        red,
        ok,
        reason,
        (("pool.no_squeeze", found), ("tape.leaks", ("other",))),
    )


MATRIX = ProofMatrix(
    ("pool.no_squeeze", "tape.leaks"),
    (
        proof("pool/squeeze", "pool.no_squeeze"),
        proof("pool/trim", "pool.no_squeeze", ok=False),
        proof("pool/legal", ""),
    ),
)
GOLDEN_ROWS = """\
case          without  fault            with it  found
pool/squeeze  passed   pool.no_squeeze  failed   request_fits_but_out_of_memory
pool/trim     passed   pool.no_squeeze  passed   nothing
pool/legal    passed   (control)
"""
GOLDEN_END = """\

BROKEN pool/trim: the fault 'pool.no_squeeze' did not break 'request_fits_but_out_of_memory'

1 of 3 cases is broken; 1 historic bug, switched on in the reference, was caught (1 case); \
1 control passed with each of 2 historic bugs
"""
GOLDEN_MATRIX = """\
              12
pool/squeeze  Fx
pool/trim     !x
pool/legal    ..

F: its own fault, found · x: another fault, found · .: nothing found · !: its own fault, not found
1  pool.no_squeeze
2  tape.leaks
"""


def proved(monkeypatch: pytest.MonkeyPatch, matrix: ProofMatrix) -> None:
    def prove(
        cases: Sequence[Case],
        progress: Callable[[int, int], None] | None,
        proved: Callable[[Proof], None] | None,
        faults_of: Callable[[Case], Sequence[str]],
    ) -> ProofMatrix:
        assert progress is not None
        progress(len(cases), len(cases))
        if proved is not None:
            for each in matrix.proofs:
                proved(each)
        return matrix

    monkeypatch.setattr("quiesce.cli.prove.prove", prove)


def test_the_end_reads_as_the_golden_text() -> None:
    assert render_end(MATRIX, whole=False, palette=PLAIN) == GOLDEN_END


def test_rows_are_written_as_they_are_proved(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (corpus / "cases" / "tape" / "diamond.case").unlink()
    (corpus / "cases" / "pool" / "legal.case").write_text(
        "title: Legal\nkind: control\n\na = allocate 1\nfree a\n", encoding="utf-8"
    )

    def prove(cases: object, progress: object, proved: Callable[[Proof], None], faults_of: object) -> ProofMatrix:
        written = capsys.readouterr().out
        for each in MATRIX.proofs:
            proved(each)
            written += (line := capsys.readouterr().out)
            assert line.startswith(f"{each.case} ")
        assert written == GOLDEN_ROWS
        return MATRIX

    monkeypatch.setattr("quiesce.cli.prove.prove", prove)
    assert main(["prove", "cases"]) == ExitCode.FINDINGS
    assert capsys.readouterr().out.startswith(GOLDEN_END.partition("1 of 3")[0])


def test_matrix_reads_as_the_golden_text() -> None:
    assert GOLDEN_MATRIX in render_end(MATRIX, whole=True, palette=PLAIN)


def test_dozens_of_faults_are_numbered_from_top_to_bottom_in_tens() -> None:
    many = ProofMatrix(tuple(f"fault.{number}" for number in range(12)), (proof("a/b", "fault.10"),))
    assert matrix_lines(many)[:3] == [
        "              1 11",
        "     1234567890 12",
        "a/b  .......... !.",
    ]


def test_everything_proved_is_green() -> None:
    whole = ProofMatrix(MATRIX.faults, MATRIX.proofs[:1])
    text = render_end(whole, whole=False, palette=PLAIN)
    assert text.endswith("\n1 historic bug, switched on in the reference, was caught (1 case)\n")
    assert "BROKEN" not in text


def test_the_conclusion_tells_cases_controls_and_those_without_a_fault_apart() -> None:
    found = replace(proof("found/b", "", kind=CaseKind.FOUND), finds=FITS)
    own = proof("mine/c", "", kind=CaseKind.REGRESSION)
    several = ProofMatrix(
        MATRIX.faults,
        (proof("a/b", "pool.no_squeeze"), proof("a/c", "tape.leaks"), proof("a/d", ""), proof("a/e", ""), found, own),
    )
    assert conclusion(several) == (
        "2 historic bugs, switched on in the reference, were each caught (2 cases); "
        "2 controls passed with each of 2 historic bugs; "
        "2 cases without a fault passed on the reference (to see them fail, run them on a backend with their bug)"
    )


def test_bugs_that_no_case_names_are_not_counted_and_those_that_were_missed_are() -> None:
    missed = ProofMatrix(
        ("pool.no_squeeze", "tape.leaks", "pool.limit"),
        (proof("a/b", "pool.no_squeeze"), proof("a/c", "tape.leaks", ok=False)),
    )
    assert conclusion(missed) == (
        "1 of 2 cases is broken; 1 of 2 historic bugs, switched on in the reference, was caught (1 case)"
    )


def test_the_matrix_is_shown_only_when_asked(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    many = ProofMatrix(tuple(f"fault.{number}" for number in range(11)), (proof("pool/legal", ""),))
    proved(monkeypatch, many)
    assert main(["prove", "cases"]) == ExitCode.NOTHING_FOUND
    assert "11  fault.10" not in capsys.readouterr().out
    assert main(["prove", "cases", "--matrix"]) == ExitCode.NOTHING_FOUND
    assert "11  fault.10\n" in capsys.readouterr().out


def test_a_broken_case_is_a_finding(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proved(monkeypatch, MATRIX)
    assert main(["prove", "cases"]) == ExitCode.FINDINGS
    assert GOLDEN_END in capsys.readouterr().out


def test_json_holds_the_whole_matrix(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proved(monkeypatch, MATRIX)
    assert main(["prove", "cases", "--json"]) == ExitCode.FINDINGS
    written = json.loads(capsys.readouterr().out)
    assert written == matrix_record(MATRIX)
    assert written["proofs"][0] == {
        "case": "pool/squeeze",
        "fault": "pool.no_squeeze",
        "finds": FITS,
        "green": "passed",
        "kind": "regression",
        "ok": True,
        "reason": "",
        "red": "failed",
        "row": {"pool.no_squeeze": [FITS], "tape.leaks": ["other"]},
    }
    assert written["proofs"][2]["red"] is None


def test_a_file_that_cannot_be_read_is_not_proved(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (corpus / "cases" / "wrong.case").write_text("titel: x\n", encoding="utf-8")
    proved(monkeypatch, ProofMatrix((), (proof("pool/legal", ""),)))
    assert main(["prove", "cases"]) == ExitCode.COULD_NOT_RUN
    assert "cases/wrong.case:1: " in capsys.readouterr().err
    assert main(["prove", "cases/wrong.case"]) == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert captured.err.startswith("quiesce: cases/wrong.case:1: ")
    assert captured.out == "", "nothing was proved"
