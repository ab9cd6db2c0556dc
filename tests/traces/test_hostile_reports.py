"""Reports that are cut off, that are none, that are meant to do harm, or that are simply too much."""

from __future__ import annotations

import contextlib
import random
import tracemalloc
from pathlib import Path
from types import ModuleType

import pytest
from tests.traces.test_native_reports import REPORTS, judged

from quiesce.simulator.judge.causes import SHOWN_MAX
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.leak_checkers import msvc, sanitizers, valgrind
from quiesce.simulator.judge.leak_checkers.judgement import judge_report
from quiesce.simulator.judge.leak_checkers.report import UnreadableReport

BEGIN = "==1==ERROR: LeakSanitizer: detected memory leaks\n"
LEAK = "Direct leak of 8 byte(s) in 1 object(s) allocated from:\n    #0 0x1 in malloc a.c:1\n    #1 0x2 in f a.c:2\n\n"
END = "SUMMARY: LeakSanitizer: {} byte(s) leaked in {} allocation(s).\n"
ERROR = "==1==ERROR: AddressSanitizer: "
ENTITIES = """<?xml version="1.0"?>
<!DOCTYPE valgrindoutput [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<valgrindoutput><error><kind>&b;</kind></error></valgrindoutput>
"""
EXTERNAL = """<!DOCTYPE valgrindoutput SYSTEM "file:///etc/hostname"><valgrindoutput></valgrindoutput>"""
XML_LEAK = (
    "<error><kind>Leak_DefinitelyLost</kind><xwhat><text>8 bytes</text><leakedbytes>{}</leakedbytes>"
    "<leakedblocks>1</leakedblocks></xwhat><stack><frame><ip>0x1</ip></frame></stack></error>\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no leak report is in it"),
        ("hello\n", "no leak report is in it"),
        ("\0" * 1000, "no leak report is in it"),
        ("<", ":1: the report ends before </valgrindoutput>"),
        ("<valgrindoutput>", "the report ends before"),
        ("<valgrindoutput></error>", "not XML as Valgrind writes it: mismatched tag"),
        ("<html></html>", "the document is 'html' and not 'valgrindoutput'"),
        ("<valgrindoutput><protocoltool>helgrind</protocoltool></valgrindoutput>", "knows no leaks"),
        (f"<valgrindoutput>{XML_LEAK.format('-1')}</valgrindoutput>", "no whole number as its 'leakedbytes'"),
        (f"<valgrindoutput>{XML_LEAK.format('9' * 99)}</valgrindoutput>", "no whole number as its 'leakedbytes'"),
        (f"<valgrindoutput>{XML_LEAK.format('٣')}</valgrindoutput>", "no whole number as its 'leakedbytes'"),
        ("<valgrindoutput>" + "<a>" * 40, "elements nest deeper than 32"),
        ("<valgrindoutput><a>" + "a" * 70_000, "a text is longer than 65536 characters"),
        (ENTITIES, ":2: the document declares a type, and so may define entities"),
        (EXTERNAL, ":1: the document declares a type"),
        (BEGIN + LEAK, ":1: the report that begins here has no SUMMARY line"),
        (BEGIN + LEAK + BEGIN + LEAK + END.format(8, 1), ":1: the report that begins here has no SUMMARY line"),
        (BEGIN + LEAK + LEAK + END.format(8, 1), ":10: the sum is 8 bytes in 1 blocks, the leaks above have 16 in 2"),
        (
            ERROR + "heap-use-after-free on address 0x1\n    #0 0x1 in f a.c:1\n",
            ":1: the error that begins here has no",
        ),
        (
            ERROR + "SEGV on unknown address 0x8\nSUMMARY: AddressSanitizer: SEGV\n",
            "ended with AddressSanitizer's 'SEGV'",
        ),
        ("==1==LeakSanitizer has encountered a fatal error.\n", "LeakSanitizer could not check"),
        (
            "Detected memory leaks!\nDumping objects ->\n",
            ":1: the dump that begins here has no 'Object dump complete.'",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableReport) as error:
        judged(path)
    assert said in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "; " in str(error.value)


@pytest.mark.parametrize(
    "name", ["leaky.valgrind.xml", "leaky.leak-sanitizer.log", "ended-0.address-sanitizer.log", "singleton.msvc.log"]
)
def test_every_truncation_is_refused_or_reported_as_none(name: str, tmp_path: Path) -> None:
    whole = (REPORTS / name).read_bytes()
    path = tmp_path / name
    complete = len(whole.rstrip())
    if name.endswith("msvc.log"):
        complete = whole.index(b"Object dump complete.") + len(b"Object dump complete.")
    elif name.startswith("ended"):
        complete = whole.index(b"SUMMARY: AddressSanitizer: ") + len(b"SUMMARY: AddressSanitizer: ")
    elif name.endswith("sanitizer.log"):
        complete = whole.index(b"allocation(s)", whole.index(b"SUMMARY")) + len(b"allocation(s)")
    for length in range(0, complete, 37):
        path.write_bytes(whole[:length])
        with pytest.raises(UnreadableReport):
            judged(path)
    path.write_bytes(whole[:complete])
    assert len(judged(path).findings) == len(judged(REPORTS / name).findings)


@pytest.mark.parametrize("seed", range(8))
def test_bytes_of_chance_are_refused_or_read(seed: int, tmp_path: Path) -> None:
    """Whatever is damaged, the answer is findings or an :class:`UnreadableReport`, and nothing else."""
    chance = random.Random(seed)
    path = tmp_path / "report"
    for name in ("leaky.valgrind.xml", "leaky.clang.log", "singleton.msvc.log"):
        damaged = bytearray((REPORTS / name).read_bytes())
        for _ in range(20):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        for each in (valgrind.FORMAT, sanitizers.FORMAT, msvc.FORMAT):
            with contextlib.suppress(UnreadableReport):
                judge_report(each.records(str(path)), AtExit.ALL)


def test_many_leaks_cost_little_memory_and_are_counted(tmp_path: Path) -> None:
    count = 3000
    for name, text in {
        "xml": "<valgrindoutput>" + XML_LEAK.format(8) * count + "</valgrindoutput>",
        "log": BEGIN + LEAK * count + END.format(8 * count, count),
    }.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        tracemalloc.start()
        findings = judged(path).findings
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(findings) == SHOWN_MAX
        assert f"{count - SHOWN_MAX:,} more findings of this rule are not shown" in findings[-1].evidence
        assert peak_bytes < 700_000


def test_a_dump_of_one_line_of_source_is_one_finding(tmp_path: Path) -> None:
    path = tmp_path / "log"
    blocks = "".join(f"a.cpp(7) : {{{number}}} normal block at 0x10, 8 bytes long.\n" for number in range(5000))
    path.write_text(f"Detected memory leaks!\nDumping objects ->\n{blocks}Object dump complete.\n", encoding="utf-8")
    (finding,) = judged(path).findings
    assert finding.observed.startswith("40,000 bytes (39.1 KiB) in 5,000 blocks")


def test_a_line_without_an_end_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x" * 3_000_000 + "\n" + BEGIN + LEAK + END.format(8, 1), encoding="utf-8")
    (finding,) = judged(path).findings
    assert finding.line == 3


@pytest.mark.parametrize("module", [valgrind, sanitizers, msvc])
def test_more_records_than_anybody_reads_are_refused(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECORDS_MAX", 3)
    dump = "".join(f"a.cpp({line}) : {{1}} normal block at 0x10, 8 bytes long.\n" for line in range(4))
    texts = {
        valgrind: f"<valgrindoutput>{XML_LEAK.format(8) * 4}</valgrindoutput>",
        sanitizers: BEGIN + LEAK * 4 + END.format(32, 4),
        msvc: f"Detected memory leaks!\n{dump}Object dump complete.\n",
    }
    path = tmp_path / "report"
    path.write_text(texts[module], encoding="utf-8")
    with pytest.raises(UnreadableReport, match="there are more than 3"):
        judged(path)
