"""The reports of native leak checkers, as they wrote them: what is read, and what becomes a finding."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from quiesce.model.findings import Finding, Grade
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import Judgement
from quiesce.simulator.judge.leak_checkers.judgement import detect, judge_report

REPORTS = Path(__file__).parent / "reports"
LOST = ["1 byte in 1 block", "24 bytes in 1 block", "40 bytes in 1 block", "648 bytes in 3 blocks"]


def judged(path: Path | str, at_exit: AtExit = AtExit.LOST) -> Judgement:
    return judge_report(detect(str(path)).records(str(path)), at_exit)


def amounts(findings: tuple[Finding, ...], grade: Grade = Grade.LIVE_LEAK) -> list[str]:
    return sorted(finding.observed.partition(",")[0] for finding in findings if finding.grade is grade)


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("leaky.valgrind.xml", "valgrind"),
        ("leaky.leak-sanitizer.log", "leak-sanitizer"),
        ("leaky.address-sanitizer.log", "leak-sanitizer"),
        ("leaky.without-symbols.log", "leak-sanitizer"),
        ("leaky.clang.log", "leak-sanitizer"),
    ],
)
def test_what_is_lost_is_found_whoever_checked(name: str, tool: str) -> None:
    assert detect(str(REPORTS / name)).tool == tool
    findings = judged(REPORTS / name).findings
    assert amounts(findings) == LOST
    assert {finding.rule for finding in findings} == {"nothing_is_left_at_quiescence"}
    assert {finding.kind for finding in findings} == {"memory leak"}


@pytest.mark.parametrize(
    ("name", "by", "where"),
    [
        ("leaky.valgrind.xml", "make (leaky.c:14)", "lose (leaky.c:20)"),
        ("leaky.leak-sanitizer.log", "make (leaky.c:14)", "lose (leaky.c:20)"),
        ("leaky.address-sanitizer.log", "make (leaky.c:14)", "lose (leaky.c:20)"),
        ("leaky.clang.log", "make (leaky.c:14:19)", "lose (leaky.c:20:33)"),
        ("leaky.without-symbols.log", "leaky-n+0x1170", "leaky-n+0x11aa"),
    ],
)
def test_who_allocated_is_no_allocator_and_the_stack_is_kept(name: str, by: str, where: str) -> None:
    (finding,) = (each for each in judged(REPORTS / name).findings if each.observed.startswith("648"))
    assert finding.allocated_by == by
    assert where in finding.evidence
    text = (REPORTS / name).read_text(encoding="utf-8").splitlines()
    assert finding.line is not None
    assert "<error>" in text[finding.line - 1] or "leak of 648 byte(s)" in text[finding.line - 1]


def test_a_pointer_into_the_middle_is_inconclusive() -> None:
    findings = judged(REPORTS / "leaky.valgrind.xml").findings
    assert amounts(findings, Grade.INCONCLUSIVE) == ["64 bytes in 1 block"]


def test_what_is_reachable_is_a_finding_where_everything_at_exit_is() -> None:
    path = REPORTS / "leaky.valgrind.xml"
    assert judged(path).notes == ("held at exit, and no finding: 176 bytes in 1 block",)
    everything = judged(path, AtExit.ALL)
    assert amounts(everything.findings) == sorted([*LOST, "176 bytes in 1 block"])
    assert everything.notes == ()
    assert judged(path, AtExit.NONE).findings == ()


def test_memory_used_wrongly_is_found_by_its_rule() -> None:
    judgement = judged(REPORTS / "misused.valgrind.xml")
    assert [finding.rule for finding in judgement.findings] == [
        "uses_stay_inside_their_block",
        "freed_memory_is_not_used",
        "freed_memory_is_not_used",
        "memory_is_freed_once",
        "only_own_memory_is_freed",
        "only_own_memory_is_freed",
        "nothing_is_left_at_quiescence",
    ]
    assert judgement.findings[0].line == 35
    assert "main (misused.c:6)" in judgement.findings[0].evidence
    assert judgement.notes == ("1 of kind UninitCondition: not about freeing memory, and so no finding",)


def test_the_dump_of_a_c_runtime() -> None:
    judgement = judged(REPORTS / "singleton.msvc.log")
    assert [(finding.line, finding.observed, finding.allocated_by) for finding in judgement.findings] == [
        (4, "216 bytes in 1 block, not freed", "Kokkos_Serial.cpp:82"),
        (6, "64 bytes in 1 block, not freed", ""),
        (8, "80 bytes in 2 blocks, not freed", ""),
    ]
    assert judgement.notes == ("1 block that the C runtime keeps for itself is no leak",)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_logs_in_the_encodings_of_shells(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text((REPORTS / "singleton.msvc.log").read_text(encoding="ascii"), encoding=encoding)
    assert judged(path) == judged(REPORTS / "singleton.msvc.log")


def test_reports_of_two_processes_in_one_log(tmp_path: Path) -> None:
    path, text = tmp_path / "log", (REPORTS / "leaky.leak-sanitizer.log").read_text(encoding="ascii")
    path.write_text(f"begin\n{text}\x1b[31mbetween\n{text}end\n", encoding="ascii")
    assert amounts(judged(path).findings) == sorted(LOST * 2)


def test_leaks_without_a_stack_are_noted(tmp_path: Path) -> None:
    path, text = tmp_path / "log", (REPORTS / "leaky.leak-sanitizer.log").read_text(encoding="ascii")
    path.write_text(text.replace("SUMMARY: LeakSanitizer: 713", "SUMMARY: LeakSanitizer: 1713"), encoding="ascii")
    assert judged(path).notes == ("1,000 bytes more leaked; the report shows no stack of them",)


def test_programs_are_compiled_run_and_imported(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler; apt-get install gcc")
    program, log = tmp_path / "leaky", tmp_path / "log"
    command = [compiler, "-w", "-g", "-O0", "-fsanitize=leak", str(REPORTS / "leaky.c"), "-o", str(program)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("the compiler has no LeakSanitizer")
    done = subprocess.run([str(program)], capture_output=True, check=False)
    log.write_bytes(done.stderr)
    assert amounts(judged(log).findings) == LOST


def test_valgrind_is_run_and_imported(tmp_path: Path) -> None:
    compiler, valgrind = shutil.which("cc"), shutil.which("valgrind")
    if compiler is None or valgrind is None:
        pytest.skip("no C compiler or no Valgrind; apt-get install gcc valgrind")
    program, report = tmp_path / "leaky", tmp_path / "leaky.xml"
    subprocess.run([compiler, "-w", "-g", "-O0", str(REPORTS / "leaky.c"), "-o", str(program)], check=True)
    words = [valgrind, "--xml=yes", f"--xml-file={report}", "--show-leak-kinds=all", str(program)]
    subprocess.run(words, check=True, capture_output=True)
    assert amounts(judged(report, AtExit.ALL).findings) == sorted([*LOST, "176 bytes in 1 block"])


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        (0, "freed_memory_is_not_used"),
        (1, "memory_is_freed_once"),
        (2, "uses_stay_inside_their_block"),
        (3, "only_own_memory_is_freed"),
        (4, "only_own_memory_is_freed"),
    ],
)
def test_an_error_that_ended_the_program_is_found_by_its_rule(number: int, rule: str) -> None:
    (finding,) = judged(REPORTS / f"ended-{number}.address-sanitizer.log").findings
    assert finding.rule == rule
    assert "main (ended.c:" in finding.evidence
    assert finding.line == 2
