from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.model.findings import SHUTDOWN, CallSite, Frame, RoundReadings
from quiesce.model.results import Result, Verdict
from quiesce.reporting.text import FRAME_LINES_MAX, call_site_lines, clean, clean_line, failure_text, rate

GOLDEN = """\
cases/pool/squeeze_before_oom.case:14: operation 3 on 'reference': b = allocate 100663296
  rule:      request_fits_but_out_of_memory
  expected:  allocated: 134217728 of 134217728 bytes are free or cached
  observed:  out of memory
  allocated: operation 1 (line 11): a = allocate 67108864
  reproduce: quiesce run cases/pool/squeeze_before_oom.case --backend reference"""


def test_failure_reads_as_the_golden_text(failing: Result) -> None:
    assert failure_text(failing) == GOLDEN


PROGRAM = """\
python train.py: call 7 on 'cuda:12': cudaMemsetAsync
  rule:      freed_memory_is_not_used
  expected:  live memory
  observed:  cudaMemsetAsync uses 16 bytes at 0x7f0000000000, freed before
  seen:      25 times; the first is shown
  kind:      use after free
  allocated by cudaMalloc (call 3):
    train.py:8 in step
    … 2 frames in pytest and pluggy
    train.py:20 in <module>
  freed by cudaFree (call 5):
    /src/pool.cpp:71 in destroy()
    /lib/libpool.so+0x1f40
  used by cudaMemsetAsync (call 7)
  evidence:
    2 more findings of this rule are not shown
  reproduce: quiesce exec -- python train.py"""


def test_call_sites_of_a_program_show_a_line_for_each_frame(program: Result) -> None:
    """Their stacks stand for the lines that say the same, and plumbing is one line."""
    assert failure_text(program) == PROGRAM


def test_a_long_stack_says_how_much_is_left_out(program: Result) -> None:
    site = CallSite("allocated by", "cudaMalloc", 0, tuple(Frame(f"f{n}", "a.py", n) for n in range(1, 31)))
    lines = call_site_lines(site)
    assert lines[1] == "  a.py:1 in f1"
    assert lines[-1] == "  … 14 more lines; the JSON report holds all"
    assert len(lines) == 2 + FRAME_LINES_MAX


SITE = "/venv/lib/python3.11/site-packages"


def test_frames_of_packages_are_counted_and_the_programs_own_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frames = (
        Frame("safe_call", f"{SITE}/numba_cuda/driver.py", 324),
        Frame("copy", f"{SITE}/numba_cuda/devicearray.py", 244),
        Frame("step", f"{tmp_path}/pkg/train.py", 8),
        Frame("run", f"{tmp_path}/train.py", 20),
    )
    site = CallSite("earlier use", "cuMemcpyHtoDAsync_v2", 7, frames)
    assert call_site_lines(site) == [
        "earlier use cuMemcpyHtoDAsync_v2 (call 7):",
        "  … 2 frames in numba_cuda",
        "  pkg/train.py:8 in step  <- here",
        "  train.py:20 in run",
    ]
    assert call_site_lines(replace(site, frames=frames[2:]))[1] == "  pkg/train.py:8 in step", "it stands first"


def test_a_stack_without_a_frame_of_the_programs_own_shows_those_of_packages() -> None:
    ending = Frame("Py_FinalizeEx", module="/opt/python3.11", folded=SHUTDOWN)
    frames = (Frame("free", f"{SITE}/cupy/memory.py", 3), ending, ending)
    assert call_site_lines(CallSite("freed by", "cudaFree", 7, frames))[1:] == [
        f"  {SITE}/cupy/memory.py:3 in free",
        "  … while Python shuts down (2 frames)",
    ]


def test_evidence_that_repeats_the_origin_is_left_out(failing: Result) -> None:
    finding = replace(failing.findings[0], allocated_by="test_a.py:3: keep(x)", evidence="test_a.py:3: keep(x)")
    assert "evidence" not in failure_text(replace(failing, findings=(finding,)))
    more = replace(finding, evidence="test_a.py:3: keep(x)\ntest_a.py:9: keep(y)")
    assert "  evidence:\n    test_a.py:9: keep(y)" in failure_text(replace(failing, findings=(more,)))


def test_unknown_origin_leaves_its_line_out(failing: Result) -> None:
    finding = replace(failing.findings[0], allocated_by="")
    assert "allocated:" not in failure_text(replace(failing, findings=(finding,))).replace("allocated: 134", "")


def test_finding_at_closing_names_no_line(failing: Result) -> None:
    finding = replace(failing.findings[0], operation_index=None, line=None, request="")
    first = failure_text(replace(failing, findings=(finding,))).splitlines()[0]
    assert first == "cases/pool/squeeze_before_oom.case: at the end on 'reference'"


def test_where_nothing_was_performed_nothing_closed(failing: Result) -> None:
    finding = replace(failing.findings[0], operation_index=None, line=None, request="")
    nothing = replace(failing, path="", case="contract/a_rule", operations=0, findings=(finding,))
    assert failure_text(nothing).splitlines()[0] == "contract/a_rule: on 'reference'"


def test_generated_sequence_is_named_where_there_is_no_file(failing: Result) -> None:
    finding = replace(failing.findings[0], line=None)
    text = failure_text(replace(failing, path="", case="generated 7", findings=(finding,)))
    assert text.startswith("generated 7: operation 3 on 'reference'")


def test_broken_case_without_finding_gives_its_reason(failing: Result) -> None:
    broken = replace(failing, verdict=Verdict.BROKEN_CASE, findings=(), reason="the fault\nchanged nothing")
    assert failure_text(broken).splitlines() == [
        "cases/pool/squeeze_before_oom.case: broken case on 'reference': the fault changed nothing",
        "  reproduce: quiesce run cases/pool/squeeze_before_oom.case --backend reference",
    ]


def test_failure_without_anything_says_so(failing: Result) -> None:
    assert "no finding and no reason was recorded" in failure_text(replace(failing, findings=(), reason=""))


def test_several_findings_share_one_reproduce_line(failing: Result) -> None:
    text = failure_text(replace(failing, findings=failing.findings * 3))
    assert text.count("rule:") == 3
    assert text.count("reproduce:") == 1
    assert text.splitlines()[-1].startswith("  reproduce:")


def test_a_long_line_of_evidence_is_shortened(failing: Result) -> None:
    text = failure_text(replace(failing, findings=(replace(failing.findings[0], evidence="x" * 64_000),)))
    assert f"    {'x' * 1000}… 63,000 more characters\n" in f"{text}\n"


def test_long_evidence_shows_its_end_and_says_what_is_left_out(failing: Result) -> None:
    evidence = "\n".join(f"line {number}" for number in range(100)) + "\n"
    text = failure_text(replace(failing, findings=(replace(failing.findings[0], evidence=evidence),)))
    assert "  evidence: (last 20 of 100 lines; the JSON report holds all)\n    line 80\n" in text
    assert "line 79" not in text
    assert "    line 99\n" in text


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("plain", "plain"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never ends", "never ends"),
        ("\x1b(Bset", "Bset"),
        ("over\rwritten\b\b\x00\x7f", "overwritten"),
        ("\x9b31mC1", "31mC1"),
        ("dos\r\nline", "dos\nline"),
        ("tab\tstays", "tab\tstays"),
        ("\u202egnp.exe", "gnp.exe"),
        ("a\u2028b", "a\nb"),
        ("lone \udc80", "lone \ufffd"),
        ("not a character \uffff", "not a character "),
        ("größe 字 🎈", "größe 字 🎈"),
    ],
)
def test_cleaning(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


def test_secrets_of_commands_do_not_get_into_texts() -> None:
    assert clean("reproduce: ./train.py --hf-token=hf_abc") == "reproduce: ./train.py --hf-token=***"


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("::stop-commands::x", ": :stop-commands::x"),
        ("said:\n \t::error file=a.py::b", "said:\n \t: :error file=a.py::b"),
        ("\x1b[1m\u2028::warning::x", "\n: :warning::x"),
        ("\x00:::error::", ": ::error::"),
        ("plain ##[error]old ##[group]", "plain # #[error]old # #[group]"),
        ("std::vector and c##d", "std::vector and c##d"),
    ],
)
def test_nothing_is_a_command_to_github(dirty: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert clean(dirty) == expected
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert clean(dirty).replace(" ", "") == expected.replace(" ", "")


def test_a_line_stays_one_line() -> None:
    assert clean_line(" a  b \n\n  c\r\nd\u2029e ") == "a  b c d e"


def test_hostile_text_cannot_forge_a_line(failing: Result) -> None:
    finding = replace(failing.findings[0], observed="x\n  reproduce: rm -rf /\x1b[2J")
    text = failure_text(replace(failing, findings=(finding,)))
    assert [line for line in text.splitlines() if line.startswith("  reproduce:")] == [GOLDEN.splitlines()[-1]]
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("per_round", "unit", "words"),
    [
        (1008.4, "bytes", "1,008 bytes per round"),
        (1.0, "threads", "1 thread per round"),
        (0.5, "descriptors", "0.50 descriptors per round"),
        (2.0, "boxes\x1b[31m", "2 boxes per round"),
    ],
)
def test_a_rate_is_told_with_its_unit(per_round: float, unit: str, words: str) -> None:
    assert rate(RoundReadings("a gauge", unit, 1, (0,), 1, per_round)) == words
